"""Connections whose every wait is limited by the remaining time: TCP, TLS, and tunnels through HTTP proxies.

A socket's timeout applies to a single read, so a server that sends a byte now and then could hold a request
for ever. Here every read and write is limited by the remaining time, name resolution too.

Errors::

    HttpsError
    |-- Unreachable        the server or the proxy does not answer or is not trusted
    |-- Broken             the connection ended, or the response was no HTTP
    |-- RefusedRedirect    the server redirected to another server, or too often
    |-- RequestTimedOut    the request did not end within its time limit
    |-- Silent             no data came for the permitted silence, before the limit
    `-- TooLarge           the body of the response is larger than permitted
"""

from __future__ import annotations

import base64
import contextlib
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from reporters.http_response import HttpResponse, IncompleteResponse

CONNECT_SECONDS = 10.0
# Labels of 1 to 63 characters; for others Python's resolver raises UnicodeError.
_SAFE_HOST = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*",
    re.ASCII,
)


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


class TooLarge(HttpsError):
    """The body of the response is larger than permitted."""


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


def is_host(host: object) -> bool:
    """Return whether *host* is a name or an address that is valid in a URL."""
    return isinstance(host, str) and _SAFE_HOST.fullmatch(host) is not None


class NetworkAddress(Protocol):
    """A server. *address* is host and port as in a URL."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def address(self) -> str: ...


@dataclass(frozen=True)
class HostAndPort:
    """A server, given by its host and its port."""

    host: str
    port: int

    @property
    def address(self) -> str:
        """Host and port as in a URL: "host:port" or "[IPv6 address]:port"."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class HttpProxy:
    """An HTTP proxy that opens tunnels by CONNECT; an empty *user* stands for no authentication."""

    server: HostAndPort
    user: str = ""
    password: str = field(default="", repr=False)


class LimitedTlsSocket(ssl.SSLSocket):
    """A TLS socket whose every read and write is limited by the remaining time."""

    limit: Limit

    def recv_into(self, *arguments: Any, **named: Any) -> int:
        self.settimeout(self.limit.wait_seconds())
        return super().recv_into(*arguments, **named)

    def send(self, *arguments: Any, **named: Any) -> int:
        self.settimeout(self.limit.wait_seconds())
        return super().send(*arguments, **named)


class _LimitedPlainSocket(socket.socket):
    """A socket without TLS whose every read and write is limited by the remaining time."""

    limit: Limit

    def recv_into(self, *arguments: Any, **named: Any) -> int:
        self.settimeout(self.limit.wait_seconds())
        return super().recv_into(*arguments, **named)

    def sendall(self, *arguments: Any, **named: Any) -> None:
        self.settimeout(self.limit.wait_seconds())  # applies to the whole call
        super().sendall(*arguments, **named)


def connect(
    server: NetworkAddress, context: ssl.SSLContext | None, limit: Limit, proxy: HttpProxy | None = None
) -> socket.socket:
    """Return a connection to *server*, through *proxy* if there is one; *context* None: without TLS.

    *context* must make sockets of the class ``LimitedTlsSocket``.

    Raises:
        HttpsError: there is no connection; the subclass tells the cause.
    """
    plain = _socket(server if proxy is None else proxy.server, limit)
    try:
        if proxy is not None:
            _open_tunnel(plain, proxy, server, limit)
        if context is None:
            return plain
        plain.settimeout(limit.wait_seconds())
        with translated(limit):
            secure = context.wrap_socket(plain, server_hostname=_encoded(server.host))
    except BaseException:
        plain.close()
        raise
    secure.limit = limit  # type: ignore[attr-defined]
    return secure


def _open_tunnel(plain: socket.socket, proxy: HttpProxy, server: NetworkAddress, limit: Limit) -> None:
    lines = [f"CONNECT {server.address} HTTP/1.1", f"Host: {server.address}"]
    if proxy.user:
        credentials = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {credentials}")
    with translated(limit):
        plain.sendall("\r\n".join([*lines, "", ""]).encode())
        with contextlib.closing(HttpResponse(plain, "CONNECT")) as response:
            status, reason = response.status, response.reason
    if not 200 <= status < 300:
        raise Unreachable(
            f"the proxy {proxy.server.address} refused a connection to {server.address}: {status} {reason}"
        )


def _socket(endpoint: NetworkAddress, limit: Limit) -> socket.socket:
    """Return a socket connected to the first address of *endpoint* that accepts a connection."""
    reason = "it has no address"
    for family, address in _addresses(endpoint, limit):
        seconds = min(CONNECT_SECONDS, limit.wait_seconds())
        try:
            return _connection(family, address, seconds, limit)
        except OSError as error:
            limit.wait_seconds()  # the limit takes precedence
            reason = error.strerror or str(error)
    raise Unreachable(f"cannot connect to {endpoint.address}: {reason}")


def _connection(family: int, address: Any, seconds: float, limit: Limit) -> socket.socket:
    """Return a socket connected to *address*. Raises OSError, also if the host lacks the address family."""
    connection = _LimitedPlainSocket(family, socket.SOCK_STREAM)
    connection.limit = limit
    try:
        connection.settimeout(seconds)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def _addresses(endpoint: NetworkAddress, limit: Limit) -> list[tuple[int, Any]]:
    """Return (family, address) of each address of the host; a thread resolves the name, to apply *limit*."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def resolve() -> None:
        try:
            host = _encoded(endpoint.host)
            answers.put(socket.getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM))
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


def _encoded(host: str) -> str | bytes:
    """Return *host* as bytes, for which Python loads no tables of Unicode; only other text needs these."""
    return host.encode() if host.isascii() else host


@contextlib.contextmanager
def translated(limit: Limit) -> Iterator[None]:
    """Turn the errors of a socket, of TLS and of HTTP into HttpsError."""
    try:
        yield
    except socket.timeout:
        raise limit.timeout_error() from None
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"its certificate is not trusted: {error.verify_message}") from None
    except IncompleteResponse:
        raise Broken("the connection ended in the middle of the answer") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Broken(f"the connection was lost: {reason}") from None
