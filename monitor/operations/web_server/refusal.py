"""Requests that the web server itself refuses; the answers are problem details, as those of the API."""

from __future__ import annotations

import json
from email.utils import formatdate
from http import HTTPStatus

from gunicorn import SERVER
from gunicorn.http import errors

from monitor.core.clipping import MOST_MESSAGE, clipped


class Refusal(Exception):
    """Ends a request before the application sees it. The connection is closed after the answer."""

    def __init__(self, status: int, code: str, detail: str, *, retry_seconds: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = HTTPStatus(status), code, clipped(detail, MOST_MESSAGE)
        self.retry_seconds = retry_seconds

    def answer(self) -> bytes:
        """Return the whole answer: status line, headers and body."""
        problem = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "code": self.code,
            "detail": self.detail,
        }
        body = json.dumps(problem).encode()
        headers = {
            "Server": SERVER,
            "Date": formatdate(usegmt=True),
            "Connection": "close",
            "Content-Type": "application/problem+json",
            "Content-Length": str(len(body)),
        }
        if self.retry_seconds is not None:
            headers["Retry-After"] = str(self.retry_seconds)
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + body


_KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.LimitRequestLine, 414, "too_large"),
    (errors.LimitRequestHeaders, 431, "too_large"),
    (errors.ExpectationFailed, 417, "unsupported"),
    (errors.UnsupportedTransferCoding, 501, "unsupported"),
)


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal of a request whose head gunicorn cannot parse."""
    for kind, status, code in _KINDS:
        if isinstance(error, kind):
            return Refusal(status, code, str(error))
    return Refusal(400, "malformed", f"the request cannot be parsed: {error}")
