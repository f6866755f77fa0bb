"""What an operation says about itself in the OpenAPI document, beyond its parameters and schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

KEY = "x-gridcast"  # in ``openapi_extra``; the document does not have it


def declare(
    *,
    scope: str | None = None,
    errors: Mapping[int, Sequence[str]] | None = None,
    example: Any = None,
    is_streamed: bool = False,
    permission: Callable[..., object] | None = None,
    subject: Callable[..., object] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """Return the ``openapi_extra`` of an operation.

    Args:
        scope: the scope of a token that may call it, by default ``read``; empty: every token may.
        errors: its own error codes by status; ``openapi`` adds those that every operation may answer with.
        example: a body that is accepted.
        is_streamed: the answer is sent while it is computed: it has no entity tag.
        permission: raises Refused unless the caller may call it; is called with the request.
        subject: returns what the path names, or raises Refused; is called with the request and the values of
            the path. ``permission.subject_of`` has what it returned.
        extra: fields of the operation in the document.
    """
    own = {
        "scope": scope,
        "errors": dict(errors or {}),
        "example": example,
        "is_streamed": is_streamed,
        "permission": permission,
        "subject": subject,
    }
    return {KEY: own, **extra}
