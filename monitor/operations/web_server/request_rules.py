"""What HTTP/1.1 asks of a request's head (RFC 9110, RFC 9112) and gunicorn's parser lets pass."""

from __future__ import annotations

import re
from typing import Any

from monitor.operations.web_server.refusal import Refusal

_UNSUPPORTED_METHODS = ("CONNECT", "TRACE")
# A name, or an address in brackets, and perhaps a port: ``uri-host [":" port]`` without empty names.
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+;=-]|%[0-9A-Fa-f]{2})+)(?::[0-9]*)?")
_ABSOLUTE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?]*)")
_MOST_SHOWN = 100  # characters of what a client sent


class _OldVersion(tuple[int, int]):
    """HTTP/1.0. The status line of its answer shows gunicorn's format of the items: HTTP/1.1, the version of
    the server (RFC 9110, section 6.2). Comparisons are those of 1.0: no chunks, and the connection is closed.
    """

    __slots__ = ()

    def __getitem__(self, _index: Any) -> int:  # type: ignore[override]  # gunicorn takes no slices
        return 1


def check_head(request: Any) -> None:
    """Check the head of *request*, and bring it into the form that the application expects.

    Raises:
        Refusal: the request is malformed, or asks for what this server does not do.
    """
    if request.method in _UNSUPPORTED_METHODS:
        raise Refusal(501, "unsupported", f"the method {request.method} is not supported")
    if "#" in request.uri:
        raise Refusal(400, "malformed", "expected a target without a fragment (#)")
    _check_host(request)
    _check_codings(request)
    if "close" in _connection_options(request):
        request.force_close()
    request.version = (1, 1) if request.version >= (1, 1) else _OldVersion(request.version)


def _check_host(request: Any) -> None:
    """Refuse a request without a valid host; the host of an absolute target replaces the header."""
    named = [value for name, value in request.headers if name == "HOST"]
    absolute = _ABSOLUTE.match(request.uri)
    if not named and request.version >= (1, 1):
        raise Refusal(400, "malformed", "expected the header Host, which HTTP/1.1 requires")
    hosts = list(named)
    if absolute is not None:
        if absolute["scheme"].lower() not in {"http", "https"}:
            scheme = absolute["scheme"][:_MOST_SHOWN]
            raise Refusal(400, "malformed", f"expected a target with http or https, got {scheme!r}")
        hosts.append(absolute["authority"])
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise Refusal(400, "malformed", f"expected a host and its port, got {host[:_MOST_SHOWN]!r}")
    if absolute is not None:
        others = [(name, value) for name, value in request.headers if name != "HOST"]
        request.headers = [("HOST", absolute["authority"]), *others]
        request.path = request.path or "/"


def _check_codings(request: Any) -> None:
    """Refuse transfer codings but ``chunked``: the application would get the body still encoded."""
    codings = ", ".join(value for name, value in request.headers if name == "TRANSFER-ENCODING")
    if codings and codings.lower() != "chunked":
        shown = codings[:_MOST_SHOWN]
        raise Refusal(501, "unsupported", f"expected the transfer coding chunked, got {shown!r}")


def _connection_options(request: Any) -> set[str]:
    values = (value for name, value in request.headers if name == "CONNECTION")
    return {option.strip().lower() for value in values for option in value.split(",")}
