"""``/healthz``: this process reads requests and answers. It asks neither Django nor any server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gunicorn.http.wsgi import Response

if TYPE_CHECKING:
    from monitor.operations.web_server.outgoing import Outgoing

PATH = "/healthz"
BODY = b"alive\n"
_HEADERS = [
    ("Content-Type", "text/plain"),
    ("Content-Length", str(len(BODY))),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
]


def is_asked(request: Any) -> bool:
    return request.path == PATH and request.method in {"GET", "HEAD"}


def answer(request: Any, sock: Outgoing, cfg: Any, *, is_last: bool) -> bool:
    """Answer *request*, the last of its connection if *is_last*; return whether the connection stays open.

    Raises:
        OSError: the client has gone.
    """
    response = Response(request, sock, cfg)
    if is_last:
        response.force_close()
    response.start_response("200 OK", _HEADERS)
    if request.method != "HEAD":
        response.write(BODY)
    response.close()
    return not response.should_close()
