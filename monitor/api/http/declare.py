"""What an operation says about itself in the OpenAPI document, beyond its parameters and schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KEY = "x-gridcast"  # in ``openapi_extra``; the document does not have it


def declare(
    *,
    scope: str | None = None,
    errors: Mapping[int, Sequence[str]] | None = None,
    example: Any = None,
    **extra: Any,
) -> dict[str, Any]:
    """Return the ``openapi_extra`` of an operation.

    Args:
        scope: the scope of a token that may call it; by default ``read`` for GET.
        errors: its own error codes by status; ``openapi`` adds those that every operation may answer with.
        example: a body that is accepted.
        extra: fields of the operation in the document.
    """
    return {KEY: {"scope": scope, "errors": dict(errors or {}), "example": example}, **extra}
