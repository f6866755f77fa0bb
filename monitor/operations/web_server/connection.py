"""One client of the web server: its requests, its answers, and its deadlines."""

from __future__ import annotations

import enum
import socket
import time
from typing import TYPE_CHECKING, Any

from monitor.operations.web_server.refusal import Refusal

if TYPE_CHECKING:
    from monitor.operations.web_server.limits import Limits
    from monitor.operations.web_server.outgoing import Outgoing
    from monitor.operations.web_server.request_reader import RequestReader

MOST_LINGERING_BYTES = 64 * 1024 * 1024


class Phase(enum.Enum):
    READING = enum.auto()  # a request, or nothing between two requests
    RUNNING = enum.auto()  # a thread answers
    SENDING = enum.auto()  # the rest of an answer; then the next request is read
    CLOSING = enum.auto()  # the rest of the last answer
    LINGERING = enum.auto()  # everything is sent; what the client still sends is dropped


class Connection:
    """A client and the socket to it, which never blocks.

    gunicorn reads *client*, *server* and *sock*: there it writes the answer. *is_surplus*: its address has
    too many connections; only its question for liveness is answered.
    """

    def __init__(
        self,
        raw: socket.socket,
        client: Any,
        server: Any,
        reader: RequestReader,
        outgoing: Outgoing,
        limits: Limits,
    ) -> None:
        self.raw, self.client, self.server = raw, client, server
        self.reader, self.sock, self._limits = reader, outgoing, limits
        self.request: Any = None
        self.is_watched_for = 0  # the events of the selector
        self.enter(Phase.READING)
        self.requests = 0
        self.is_surplus = False
        self._lingered_bytes = 0

    @property
    def held_bytes(self) -> int:
        in_thread = self.reader.body_bytes if self.phase is Phase.RUNNING else 0
        return self.reader.held_bytes + in_thread + self.sock.unsent_bytes

    @property
    def can_be_ended(self) -> bool:
        """Return whether ending the connection frees bytes: a thread keeps its request."""
        return self.phase is not Phase.RUNNING or self.sock.unsent_bytes > 0

    @property
    def host(self) -> str:
        return str(self.client[0]) if isinstance(self.client, tuple) else ""

    @property
    def is_idle(self) -> bool:
        """Return whether the client has sent no byte of a further request."""
        return self.phase is Phase.READING and self.reader.is_idle

    @property
    def is_between_requests(self) -> bool:
        return self.is_idle and self.requests > 0

    def enter(self, phase: Phase) -> None:
        self.phase, self.since = phase, time.monotonic()

    def receive(self, most_bytes: int) -> int | None:
        """Read what the client has sent; return the number of bytes, 0 at the end, None if there is nothing.

        Raises:
            Refusal: the client has ended the connection in the middle of a request.
        """
        try:
            data = self.raw.recv(most_bytes)
        except BlockingIOError:
            return None
        except OSError:
            return 0
        if self.phase is Phase.LINGERING:
            self._lingered_bytes += len(data)
            return len(data) if self._lingered_bytes <= MOST_LINGERING_BYTES else 0
        if not data and not self.reader.is_idle:
            raise Refusal(400, "malformed", "the request ended too early")
        if self.reader.is_idle:
            self.since = time.monotonic()  # the deadline of the head begins
        self._feed(data)
        return len(data)

    def _feed(self, data: bytes) -> None:
        was_in_body = self.reader.is_in_body
        self.reader.feed(data)
        self.request = self.reader.take()
        if self.reader.is_in_body and not was_in_body:
            self.since = time.monotonic()  # the deadline of the body begins

    def next_request(self) -> bool:
        """Return whether a complete request is in *request*, with what the client has sent so far."""
        if self.request is None:
            self._feed(b"")
        return self.request is not None

    def late(self, now: float, idle_seconds: float) -> Refusal | None:
        """Return why the request that the client sends is refused at *now*; None if it is in time."""
        seconds = now - self.since
        if self.reader.is_in_body:
            if self._limits.body.is_too_slow(seconds, self.reader.body_bytes):
                detail = f"the body did not arrive in time: {self.reader.body_bytes} bytes in {seconds:.0f} s"
                return Refusal(408, "too_slow", detail)
        elif seconds > (idle_seconds if self.is_between_requests else self._limits.head_seconds):
            return Refusal(408, "too_slow", f"the headers did not arrive within {seconds:.0f} s")
        return None

    def is_overdue(self, now: float) -> bool:
        """Return whether the connection is to be closed at *now* without a further word."""
        if self.phase is Phase.LINGERING:
            return now - self.since > self._limits.lingering_seconds
        return self.sock.is_broken or self.sock.is_too_slow(now)

    def linger(self) -> None:
        """Tell the client that nothing follows. Raises OSError if the client has gone."""
        self.raw.shutdown(socket.SHUT_WR)
        self.enter(Phase.LINGERING)

    def close(self) -> None:
        self.sock.break_off()
        self.raw.close()
