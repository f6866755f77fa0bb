"""An answer that is the same for every caller: bytes, tag and compressed forms are made once per process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

from monitor.web.api.http.compress import ENCODINGS, accepted, packed
from monitor.web.api.http.conditional import tag_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest


class StaticAnswer:
    """Answers with the bytes that *make* returns. It contains no secret, so it is compressed for everyone."""

    def __init__(self, make: Callable[[], bytes], content_type: str) -> None:
        self._make, self._content_type = make, content_type
        self._lock = threading.Lock()
        self._bodies: dict[str | None, bytes] = {}  # by encoding
        self._tag = ""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        encoding = accepted(request.headers.get("Accept-Encoding", ""))
        response = HttpResponse(self._body(encoding), content_type=self._content_type)
        response["ETag"] = self._tag
        if encoding is not None:
            response["Content-Encoding"] = encoding
        patch_vary_headers(response, ["Accept-Encoding"])
        return response

    def _body(self, encoding: str | None) -> bytes:
        """Return the body; the first callers of a process wait until one of them has made it."""
        if not self._bodies:
            with self._lock:
                if not self._bodies:
                    body = self._make()
                    self._tag = tag_of(body)
                    self._bodies = {None: body} | {name: packed(body, name) for name in ENCODINGS}
        return self._bodies[encoding]
