"""JSON of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from ninja.renderers import BaseRenderer

if TYPE_CHECKING:
    from django.http import HttpRequest


class JsonRenderer(BaseRenderer):
    """Times have microseconds; ninja's own renderer cuts them to milliseconds."""

    media_type = "application/json"

    def render(self, _request: HttpRequest, data: Any, *, response_status: int) -> bytes:  # noqa: ARG002
        return msgspec.json.encode(data)
