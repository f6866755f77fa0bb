"""Post a message to a checked address of its destination, within a time limit."""

from __future__ import annotations

import contextlib
import http
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings

from monitor.retry_after import MAY_ASK, retry_after_seconds
from monitor.webhooks import signature
from monitor.webhooks.destination import (
    HIDDEN,
    DestinationError,
    Resolve,
    WebhookDestination,
    checked_addresses,
    resolve,
)

SECONDS = 10.0  # for the whole exchange
_ANSWER_BYTES = 200


class NotAccepted(Exception):
    """The receiver has not accepted the message.

    Attributes:
        status: that of its answer; None without an answer.
        retry_seconds: for how long it asks to be left alone; None if it does not ask.
    """

    def __init__(self, message: str, status: int | None = None, retry_seconds: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_seconds = status, retry_seconds

    @property
    def is_gone(self) -> bool:
        """Whether the receiver says that it never wants another message."""
        return self.status == http.HTTPStatus.GONE


@dataclass(frozen=True)
class Poster:
    """Posts messages.

    Attributes:
        allowed: hosts that may be internal; see ``checked_addresses``.
        context: verifies the certificates of receivers.
        clock: returns Unix time.
    """

    allowed: Collection[str] = field(default_factory=lambda: settings.GRIDCAST_INTERNAL_WEBHOOK_HOSTS)
    resolve: Resolve = resolve
    context: Callable[[], ssl.SSLContext] = ssl.create_default_context
    clock: Callable[[], float] = time.time
    seconds: float = SECONDS

    def post(self, to: WebhookDestination, message: str, body: bytes, keys: Sequence[bytes]) -> None:
        """Return when the receiver has answered 2xx to *body*, signed by *keys*, with the id *message*.

        Raises:
            NotAccepted: the message says why; it does not contain the path of the URL.
        """
        headers = {
            "Host": to.origin.partition("://")[2],
            "Content-Type": "application/json",
            "User-Agent": "gridcast",
            **signature.headers(message, int(self.clock()), body, keys),
        }
        try:
            addresses = checked_addresses(to, self.allowed, self.resolve)
            status, answer, retry_after = self._exchange(to, addresses, body, headers)
        except DestinationError as error:
            raise NotAccepted(f"cannot post to {to.origin}: {error}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotAccepted(f"cannot post to {to.origin}: {str(error) or type(error).__name__}") from None
        if not 200 <= status < 300:
            retry_seconds = retry_after_seconds(retry_after, self.clock()) if status in MAY_ASK else None
            raise NotAccepted(f"{to.origin} answered {status}{answer}", status, retry_seconds)

    def _exchange(
        self, to: WebhookDestination, addresses: Sequence[str], body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, str, str]:
        """Send the request; return the status, the beginning of the body, and Retry-After of the answer."""
        until = time.monotonic() + self.seconds
        connection = http.client.HTTPConnection(to.host, to.port, timeout=self.seconds)
        with contextlib.closing(connection), contextlib.closing(self._connected(to, addresses)) as channel:
            connection.sock = channel
            # A timeout of the socket starts again with every byte; this one limits the whole exchange.
            alarm = threading.Timer(max(until - time.monotonic(), 0.0), _cut, [channel])
            alarm.daemon = True
            alarm.start()
            try:
                connection.request("POST", to.path, body, dict(headers))
                return _read(connection.getresponse(), to.path)
            except OSError as error:
                if time.monotonic() < until:
                    raise
                raise TimeoutError(f"no answer within {self.seconds:g} s") from error
            finally:
                alarm.cancel()

    def _connected(self, to: WebhookDestination, addresses: Sequence[str]) -> socket.socket:
        """Connect to the first of *addresses* that answers; verify TLS by the name of the host."""
        reason: OSError = OSError(f"{to.host} has no address")
        for address in addresses:
            try:
                channel = socket.create_connection((address, to.port), timeout=self.seconds / len(addresses))
                break
            except OSError as error:
                reason = error
        else:
            raise reason
        channel.settimeout(self.seconds)
        if to.scheme == "http":
            return channel
        try:
            return self.context().wrap_socket(channel, server_hostname=to.host)
        except BaseException:
            channel.close()
            raise


def _read(answer: http.client.HTTPResponse, path: str) -> tuple[int, str, str]:
    """Return the status, the beginning of the text and Retry-After; receivers repeat the *path* in errors."""
    location, retry_after = answer.headers.get("Location"), answer.headers.get("Retry-After", "")
    if location and 300 <= answer.status < 400:
        to = _without(path, location)[:_ANSWER_BYTES]
        text = f", a redirect to {to!r}, which is not followed"
        return answer.status, text, retry_after
    whole = answer.read1(_ANSWER_BYTES + len(path)).decode(errors="replace")
    text = " ".join(_without(path, whole)[:_ANSWER_BYTES].split())
    return answer.status, f": {text}" if text else "", retry_after


def _without(path: str, text: str) -> str:
    """Return *text* without the *path* of a URL, with and without its query."""
    for part in (path, path.partition("?")[0], path.rstrip("/")):
        text = text.replace(part, f"/{HIDDEN}") if len(part) > 1 else text
    return text


def _cut(channel: socket.socket) -> None:
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
