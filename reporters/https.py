"""HTTPS requests with one time limit over everything: name resolution, connections, headers and bodies.

Redirects are followed only to the same host and port, because the headers contain tokens. ``connections.py``
has the errors.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import stat
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path

from reporters.connections import (
    Broken,
    HttpProxy,
    HttpsError,
    Limit,
    LimitedTlsSocket,
    NetworkAddress,
    RefusedRedirect,
    RequestTimedOut,
    Silent,
    TooLarge,
    Unreachable,
    connect,
    translated,
)
from reporters.http_response import HttpResponse

__all__ = [
    "Broken",
    "HttpsError",
    "HttpsResponse",
    "Limit",
    "RefusedRedirect",
    "RequestTimedOut",
    "Silent",
    "TooLarge",
    "Unreachable",
    "request",
    "tls_context",
]

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_CHUNK_BYTES = 65536
_WITH_LENGTH = ("POST", "PUT", "PATCH")  # servers expect the length of their bodies, also of none
_PORTS = {True: 443, False: 80}  # with TLS, without


class HttpsResponse:
    """A response: status, headers and a streamed body."""

    def __init__(self, response: HttpResponse, limit: Limit) -> None:
        self._response = response
        self._limit = limit
        self.status = response.status
        self.is_empty = response.is_empty

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str:
        return self._response.headers.get(name.lower(), "")

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces as it arrives. Raises HttpsError if the body is not complete."""
        while True:
            with translated(self._limit):
                piece = self._response.read(_CHUNK_BYTES)
            if not piece:
                return
            yield piece

    def body(self, max_bytes: int) -> bytes:
        """Return the whole body. Raises TooLarge if it has more than *max_bytes*, else as ``pieces``."""
        pieces, size_bytes = [], 0
        for piece in self.pieces():
            size_bytes += len(piece)
            if size_bytes > max_bytes:
                raise TooLarge(f"the answer is larger than {max_bytes} bytes")
            pieces.append(piece)
        return b"".join(pieces)


@contextlib.contextmanager
def request(
    endpoint: NetworkAddress,
    method: str,
    path: str,
    headers: Mapping[str, str],
    context: ssl.SSLContext | None,
    limit: Limit,
    *,
    body: bytes | None = None,
    proxy: HttpProxy | None = None,
    redirects: int = _REDIRECTS,
) -> Iterator[HttpsResponse]:
    """Send a request for *path*, which is quoted here; yield the response, whatever the status.

    With the *context* None the request is plain HTTP. The limit *redirects* includes the first request: with
    1, every redirect is refused.

    Raises:
        HttpsError: there was no response; the subclass tells the cause.
    """
    target = urllib.parse.quote(path)
    for _ in range(redirects):
        with contextlib.closing(connect(endpoint, context, limit, proxy)) as connection:
            with translated(limit):
                is_default = endpoint.port == _PORTS[context is not None]
                host = endpoint.address.rpartition(":")[0] if is_default else endpoint.address
                _send(connection, method, target, {"Host": host, **headers}, body)
                response = HttpResponse(connection, method)
            with contextlib.closing(response):
                if response.status not in _MOVED:
                    yield HttpsResponse(response, limit)
                    return
                location = response.headers.get("location", "")
                if redirects == 1:
                    raise RefusedRedirect(f"refused a redirect to {location or 'nowhere'}")
                target = _redirected(endpoint, target, location)
    raise RefusedRedirect(f"redirected more than {redirects} times")


def tls_context(*, ca_file: str, ca_directory: str, certificate_file: str) -> ssl.SSLContext:
    """Return the TLS context for requests.

    If *ca_file* and *ca_directory* are empty, the system's authorities are trusted. *certificate_file*
    contains the client's certificate and private key; an empty path stands for no certificate.

    Raises:
        Unreachable: a file cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = LimitedTlsSocket
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # not the default of Python 3.9
    try:
        if ca_file and not stat.S_ISREG(Path(ca_file).stat().st_mode):  # a pipe would block
            raise Unreachable(f"cannot use {ca_file}: not a regular file")
        if ca_file or ca_directory:
            context.load_verify_locations(ca_file or None, ca_directory or None)
        else:
            context.load_default_certs()
        if certificate_file:  # with a password, so that OpenSSL does not prompt for one
            context.load_cert_chain(certificate_file, password="")
    except OSError as error:  # ssl.SSLError is one
        files = ", ".join(file for file in (ca_file, ca_directory, certificate_file) if file)
        raise Unreachable(f"cannot use {files}: {error.strerror or error}") from None
    return context


def _send(
    connection: socket.socket, method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> None:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    if body is not None or method in _WITH_LENGTH:
        lines.append(f"Content-Length: {len(body or b'')}")
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header has more than one line")
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
    connection.sendall(head.encode("latin-1") + (body or b""))


def _redirected(endpoint: NetworkAddress, target: str, location: str) -> str:
    """Return the path and query to which *location* redirects. Raises RefusedRedirect for another server."""
    here = urllib.parse.urlsplit(f"https://{endpoint.address}{target}")
    there = urllib.parse.urlsplit(urllib.parse.urljoin(here.geturl(), location))
    try:
        is_same_server = (there.scheme, there.hostname, there.port or 443) == (
            "https",
            here.hostname,
            here.port,
        )
    except ValueError:  # an invalid port
        is_same_server = False
    if not is_same_server:
        raise RefusedRedirect(
            f"refused a redirect to {location or 'nowhere'}: no token is sent to another server"
        )
    return there.path + (f"?{there.query}" if there.query else "")
