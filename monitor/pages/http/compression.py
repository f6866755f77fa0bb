"""Compression of pages; the API compresses its answers by its own rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.middleware.gzip import GZipMiddleware

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

_API = "/api/v1/"


class PageCompressionMiddleware(GZipMiddleware):
    """Compress all answers but those of the API, to which random padding against BREACH would be foreign."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith(_API):
            return response
        return super().process_response(request, response)
