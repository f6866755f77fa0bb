"""HTTPS requests with one limit over all: names, connections, headers, and bodies however slowly they come.

A time-out of a socket is of one read only, so a server that says a byte now and then would be listened to for
ever. Here every read and write gets what is left of the limit. A redirection is followed to the same host and
port only, because the headers hold tokens.

Errors::

    HttpsError
    |-- Unreachable      nothing answers there, or it is not who it should be
    |-- Broken           the connection ended, or what came was no HTTP
    |-- WrongWay         a redirection that must not be followed
    |-- RequestTimedOut        the limit was reached
    `-- Silent           nothing came for a while, before the limit
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
    """Root of what goes wrong with a request."""


class Unreachable(HttpsError):
    """Nothing answers there, or it is not who it should be."""


class Broken(HttpsError):
    """The connection ended, or what came was no HTTP."""


class WrongWay(HttpsError):
    """A redirection that must not be followed."""


class RequestTimedOut(HttpsError):
    """The limit was reached."""


class Silent(HttpsError):
    """Nothing came for a while."""


class Limit:
    """Everything ends at *until*, of the monotonic clock; nothing is awaited for over *silence_seconds*."""

    def __init__(self, until: float, silence_seconds: float = threading.TIMEOUT_MAX) -> None:
        self._until = until
        self._silence_seconds = silence_seconds

    def wait_seconds(self) -> float:
        """How long the next thing may be awaited. Raises RequestTimedOut."""
        left_seconds = self._until - time.monotonic()
        if left_seconds <= 0:
            raise RequestTimedOut
        return min(left_seconds, self._silence_seconds)

    def passed(self) -> HttpsError:
        """What a wait that was in vain means."""
        if time.monotonic() >= self._until:
            return RequestTimedOut()
        return Silent(f"nothing was heard for {self._silence_seconds:g} s")


class _LimitedSocket(ssl.SSLSocket):
    """A socket that waits for no single read or write longer than its limit allows."""

    limit: Limit

    def recv_into(self, *arguments: Any, **named: Any) -> int:
        self.settimeout(self.limit.wait_seconds())
        return super().recv_into(*arguments, **named)

    def send(self, *arguments: Any, **named: Any) -> int:
        self.settimeout(self.limit.wait_seconds())
        return super().send(*arguments, **named)


class Answer:
    """What a server says: status and headers, and a body as it comes."""

    def __init__(self, response: http.client.HTTPResponse, limit: Limit) -> None:
        self._response = response
        self._limit = limit
        self.status = response.status
        self.is_empty = response.length == 0  # it has said that there is no body

    @property
    def is_fine(self) -> bool:
        """Whether the status says so."""
        return 200 <= self.status < 300

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "")

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes, to its end. Raises Broken, RequestTimedOut, Silent."""
        while True:
            with _translated(self._limit):
                piece = self._response.read1(_CHUNK_BYTES)
            if not piece:
                return
            yield piece


@contextlib.contextmanager
def asked(
    endpoint: Endpoint,
    method: str,
    path: str,
    headers: Mapping[str, str],
    context: ssl.SSLContext,
    limit: Limit,
) -> Iterator[Answer]:
    """Ask the server for *path* (not quoted yet); its answer while in this context.

    Raises HttpsError.
    """
    target = urllib.parse.quote(path)
    for _ in range(_REDIRECTS):
        with contextlib.closing(_connected(endpoint, context, limit)) as connection:
            with _translated(limit):
                connection.request(method, target, headers=dict(headers))
                response = connection.getresponse()
            with contextlib.closing(response):
                if response.status not in _MOVED:
                    yield Answer(response, limit)
                    return
                target = _elsewhere(endpoint, target, response.headers.get("Location", ""))
    raise WrongWay(f"redirected more than {_REDIRECTS} times")


def context_of(*, ca_file: str, ca_directory: str, certificate_file: str) -> ssl.SSLContext:
    """Whom to trust (the system's authorities where neither is named), and who we are (certificate and key).

    Raises Unreachable: a file cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = _LimitedSocket
    try:
        if ca_file and not stat.S_ISREG(Path(ca_file).stat().st_mode):  # a pipe would be waited for
            raise Unreachable(f"cannot use {ca_file}: not a regular file")
        if ca_file or ca_directory:
            context.load_verify_locations(ca_file or None, ca_directory or None)
        else:
            context.load_default_certs()
        if certificate_file:  # with a password for its key, lest OpenSSL ask somebody
            context.load_cert_chain(certificate_file, password="")
    except OSError as error:  # ssl.SSLError is one
        files = ", ".join(file for file in (ca_file, ca_directory, certificate_file) if file)
        raise Unreachable(f"cannot use {files}: {error.strerror or error}") from None
    return context


def _connected(endpoint: Endpoint, context: ssl.SSLContext, limit: Limit) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
    connection.auto_open = 0  # never again without our limit
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
    """A connection to the first of its addresses that takes one."""
    said = "it has no address"
    for family, address in _addresses(endpoint, limit):
        seconds = min(CONNECT_SECONDS, limit.wait_seconds())
        try:
            return _connection(family, address, seconds)
        except OSError as error:
            limit.wait_seconds()  # the limit's end is the cause that counts
            said = error.strerror or str(error)
    raise Unreachable(f"cannot connect to {endpoint.address}: {said}")


def _connection(family: int, address: Any, seconds: float) -> socket.socket:
    """Raises OSError, also where this host has nothing of that family."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.settimeout(seconds)
        made.connect(address)
    except BaseException:
        made.close()
        raise
    return made


def _addresses(endpoint: Endpoint, limit: Limit) -> list[tuple[int, Any]]:
    """In a thread, because nothing else bounds a resolver; one that hangs is left to its own limit."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            answers.put(socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM))
        except OSError as error:
            answers.put(error)

    threading.Thread(target=resolve, name=f"resolve {endpoint.host}", daemon=True).start()
    try:
        found = answers.get(timeout=limit.wait_seconds())
    except queue.Empty:
        raise limit.passed() from None
    if isinstance(found, OSError):
        raise Unreachable(f"cannot connect to {endpoint.address}: {found.strerror}")
    return [(family, address) for family, _, _, _, address in found]


def _elsewhere(endpoint: Endpoint, target: str, location: str) -> str:
    """The target of a redirection. Raises WrongWay where it leads to another server."""
    here = urllib.parse.urlsplit(f"https://{endpoint.address}{target}")
    there = urllib.parse.urlsplit(urllib.parse.urljoin(here.geturl(), location))
    try:
        same = (there.scheme, there.hostname, there.port or 443) == ("https", here.hostname, here.port)
    except ValueError:  # a port that is none
        same = False
    if not same:
        raise WrongWay(f"redirected to {location or 'nowhere'}, where no token is sent")
    return there.path + (f"?{there.query}" if there.query else "")


@contextlib.contextmanager
def _translated(limit: Limit) -> Iterator[None]:
    try:
        yield
    except socket.timeout:
        raise limit.passed() from None
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"its certificate is not trusted: {error.verify_message}") from None
    except http.client.IncompleteRead:
        raise Broken("the connection ended in the middle of the answer") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Broken(f"the connection was lost: {said}") from None
