"""HTTPS requests with one time limit over everything: name resolution, connections, headers and bodies.

A socket's timeout applies to a single read, so a server that sends a byte now and then could hold a request
for ever. This module limits every read and write by the remaining time. Redirects are followed only to the
same host and port, because the headers contain tokens.

Errors::

    HttpsError
    |-- Unreachable        the server does not answer or is not trusted
    |-- Broken             the connection ended, or the response was no HTTP
    |-- RefusedRedirect    the server redirected to another server, or too often
    |-- RequestTimedOut    the request did not end within its time limit
    `-- Silent             no data came for the permitted silence, before the limit
"""

from __future__ import annotations

import contextlib
import http.client
import queue
import socket
import ssl
import stat
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reporters.endpoints import CONNECT_SECONDS, Endpoint

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_CHUNK_BYTES = 65536


class HttpsError(Exception):
    """The base class of the errors of a request."""


class Unreachable(HttpsError):
    """The server does not answer or is not trusted."""


class Broken(HttpsError):
    """The connection ended, or the response was no HTTP."""


class RefusedRedirect(HttpsError):
    """The server redirected to another server, or too often."""


class RequestTimedOut(HttpsError):
    """The request did not end within its time limit."""


class Silent(HttpsError):
    """No data came for the permitted silence, before the time limit."""


class Limit:
    """The time limits of a request: the monotonic time *until*, and *silence_seconds* for each wait."""

    def __init__(self, until: float, silence_seconds: float = threading.TIMEOUT_MAX) -> None:
        self._until = until
        self._silence_seconds = silence_seconds

    def wait_seconds(self) -> float:
        """Return the limit of the next wait, in seconds. Raises RequestTimedOut if no time remains."""
        left_seconds = self._until - time.monotonic()
        if left_seconds <= 0:
            raise RequestTimedOut
        return min(left_seconds, self._silence_seconds)

    def timeout_error(self) -> HttpsError:
        """Return the error for a wait that timed out: Silent before *until*, else RequestTimedOut."""
        if time.monotonic() >= self._until:
            return RequestTimedOut()
        return Silent(f"no data for {self._silence_seconds:g} s")


class _LimitedSocket(ssl.SSLSocket):
    """A socket whose every read and write is limited by the remaining time."""

    limit: Limit

    def recv_into(self, *arguments: Any, **named: Any) -> int:
        self.settimeout(self.limit.wait_seconds())
        return super().recv_into(*arguments, **named)

    def send(self, *arguments: Any, **named: Any) -> int:
        self.settimeout(self.limit.wait_seconds())
        return super().send(*arguments, **named)


class HttpsResponse:
    """A response: status, headers and a streamed body."""

    def __init__(self, response: http.client.HTTPResponse, limit: Limit) -> None:
        self._response = response
        self._limit = limit
        self.status = response.status
        self.is_empty = response.length == 0  # Content-Length: 0

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "")

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces as it arrives. Raises HttpsError if the body is not complete."""
        while True:
            with _translated(self._limit):
                piece = self._response.read1(_CHUNK_BYTES)
            if not piece:
                return
            yield piece


@contextlib.contextmanager
def request(
    endpoint: Endpoint,
    method: str,
    path: str,
    headers: Mapping[str, str],
    context: ssl.SSLContext,
    limit: Limit,
) -> Iterator[HttpsResponse]:
    """Send a request for *path*, which is quoted here; yield the response, whatever the status.

    Raises:
        HttpsError: there was no response; the subclass tells the cause.
    """
    target = urllib.parse.quote(path)
    for _ in range(_REDIRECTS):
        with contextlib.closing(_connected(endpoint, context, limit)) as connection:
            with _translated(limit):
                connection.request(method, target, headers=dict(headers))
                response = connection.getresponse()
            with contextlib.closing(response):
                if response.status not in _MOVED:
                    yield HttpsResponse(response, limit)
                    return
                target = _redirected(endpoint, target, response.headers.get("Location", ""))
    raise RefusedRedirect(f"redirected more than {_REDIRECTS} times")


def tls_context(*, ca_file: str, ca_directory: str, certificate_file: str) -> ssl.SSLContext:
    """Return the TLS context for requests.

    If *ca_file* and *ca_directory* are empty, the system's authorities are trusted. *certificate_file*
    contains the client's certificate and private key; an empty path stands for no certificate.

    Raises:
        Unreachable: a file cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = _LimitedSocket
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


def _connected(endpoint: Endpoint, context: ssl.SSLContext, limit: Limit) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
    connection.auto_open = 0  # no reconnect without the limit
    plain = _socket(endpoint, limit)
    try:
        plain.settimeout(limit.wait_seconds())
        with _translated(limit):
            secure = context.wrap_socket(plain, server_hostname=endpoint.host)
    except BaseException:
        plain.close()
        raise
    secure.limit = limit  # type: ignore[attr-defined]
    connection.sock = secure
    return connection


def _socket(endpoint: Endpoint, limit: Limit) -> socket.socket:
    """Return a socket connected to the first address of *endpoint* that accepts a connection."""
    reason = "it has no address"
    for family, address in _addresses(endpoint, limit):
        seconds = min(CONNECT_SECONDS, limit.wait_seconds())
        try:
            return _connection(family, address, seconds)
        except OSError as error:
            limit.wait_seconds()  # the limit takes precedence
            reason = error.strerror or str(error)
    raise Unreachable(f"cannot connect to {endpoint.address}: {reason}")


def _connection(family: int, address: Any, seconds: float) -> socket.socket:
    """Return a socket connected to *address*. Raises OSError, also if the host lacks the address family."""
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def _addresses(endpoint: Endpoint, limit: Limit) -> list[tuple[int, Any]]:
    """Return (family, address) of each address of the host; a thread resolves the name, to apply *limit*."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            answers.put(socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=resolve, name=f"resolve {endpoint.host}", daemon=True).start()
    try:
        answer = answers.get(timeout=limit.wait_seconds())
    except queue.Empty:
        raise limit.timeout_error() from None
    if isinstance(answer, OSError):
        raise Unreachable(f"cannot connect to {endpoint.address}: {answer.strerror}")
    return [(family, address) for family, _, _, _, address in answer]


def _redirected(endpoint: Endpoint, target: str, location: str) -> str:
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


@contextlib.contextmanager
def _translated(limit: Limit) -> Iterator[None]:
    try:
        yield
    except socket.timeout:
        raise limit.timeout_error() from None
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"its certificate is not trusted: {error.verify_message}") from None
    except http.client.IncompleteRead:
        raise Broken("the connection ended in the middle of the answer") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Broken(f"the connection was lost: {reason}") from None
