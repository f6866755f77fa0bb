"""A gunicorn worker whose event loop reads requests and sends answers: threads only compute.

gunicorn's own threaded worker reads the body of a request, and writes the answer, in the thread that runs the
application. As many slow clients as it has threads silence it. Here a thread gets a request when its body is
complete, and is free again when it has written the answer, whether or not the client reads.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from gunicorn.errors import ConfigError
from gunicorn.workers.gthread import ThreadWorker

from monitor.core import env
from monitor.operations.web_server import environment, liveness
from monitor.operations.web_server.access_log import ClipFields
from monitor.operations.web_server.address_limit import AddressLimit, client_of
from monitor.operations.web_server.connection import Connection, Phase
from monitor.operations.web_server.limits import Limits
from monitor.operations.web_server.outgoing import Outgoing
from monitor.operations.web_server.proxies import proxies
from monitor.operations.web_server.refusal import Refusal
from monitor.operations.web_server.replacement import Replacement, ending_lock
from monitor.operations.web_server.request_reader import RequestReader

_RECEIVE_BYTES = 64 * 1024
_RECEIVED_BETWEEN_CHECKS = 32 * 1024 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FAILED = Refusal(500, "our_error", "the application failed; its log says why")
_BUSY = Refusal(503, "busy", "the web server has too many connections; try again", retry_seconds=1)
_TOO_MANY = Refusal(503, "busy", "this address has too many connections; try again", retry_seconds=1)
_STOPPING = Refusal(503, "busy", "the web server stops; try again", retry_seconds=1)


class BufferedWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Serves each connection in the event loop but for the time in which a thread computes its answer."""

    limits: ClassVar[Limits] = Limits()
    alive: bool  # gunicorn's: false while the process ends

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cfg.set("limit_request_line", 0)  # the reader limits it: gunicorn accepts at most 8190 bytes
        # The application decides which peers are proxies: gunicorn believes any peer on this host.
        self.cfg.set("secure_scheme_headers", {})
        self.cfg.set("forwarder_headers", "")
        self._connections: set[Connection] = set()
        self._addresses = AddressLimit(environment.connections_per_address(), proxies(), self.log)
        self._waiting_threads = threading.Semaphore(max(self.cfg.threads // 2, 1))
        self._checked_at = 0.0
        self._received_bytes = 0  # since then
        self._stops_at: float | None = None
        # Made in the parent, before the fork.
        self._replacement = Replacement(environment.web_max_bytes(), self.limits.grown_seconds, ending_lock())

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        super().check_config(cfg, log)
        if cfg.is_ssl:
            raise ConfigError("this worker does not serve TLS: end TLS at a proxy in front of it")
        try:
            environment.web_max_bytes()
            environment.connections_per_address()
            proxies()
        except env.InvalidVariable as error:
            raise ConfigError(str(error)) from None

    def init_process(self) -> None:
        self.log.access_log.addFilter(ClipFields())
        super().init_process()  # returns when the process ends

    # What the event loop of gunicorn calls.

    def accept(self, listener: socket.socket) -> None:
        try:
            raw, address = listener.accept()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:  # gunicorn's answer is to exit
                self._make_room()
            elif error.errno not in {errno.EAGAIN, errno.ECONNABORTED}:
                raise
            return
        raw.setblocking(False)
        if not isinstance(address, tuple):
            address = ""  # a Unix socket: a client can give its end any name, such as 127.0.0.1
        outgoing = Outgoing(raw, self.limits, self._waiting_threads)
        reader = RequestReader(self.cfg, address, self.limits)
        connection = Connection(raw, address, listener.getsockname(), reader, outgoing, self.limits)
        outgoing.wake = partial(self.method_queue.defer, self._flush, connection)
        if len(self._connections) >= self.worker_connections - 1:
            self._make_room()
        surplus = self._addresses.add(connection.host)
        connection.is_surplus = surplus > 0
        if surplus > self.limits.most_surplus:
            self._end_surplus(connection.host)
        self._connections.add(connection)
        self.nr_conns = len(self._connections)
        self._watch(connection, selectors.EVENT_READ)

    def handle(self, conn: Connection) -> bool:
        """Answer the request of *conn*, in a thread; return whether the connection stays open."""
        try:
            return bool(self.handle_request(conn.request, conn))
        except (OSError, StopIteration):  # the client has gone, or gunicorn has logged the failure
            conn.sock.break_off()
        except Exception:  # Django answers its own errors; not a header that gunicorn refuses to send
            self.log.exception("answering %s %s failed", conn.request.method, conn.request.path)
            with contextlib.suppress(OSError):
                conn.sock.sendall(_FAILED.answer())
        return False

    def finish_request(self, conn: Connection, fs: Any) -> None:
        """Go on with *conn* after the thread has written its answer. Called in the event loop."""
        self._go_on(conn, not fs.cancelled() and fs.exception() is None and fs.result())

    def murder_keepalived(self, force: bool = False) -> None:
        """End connections whose deadlines are over; with *force*, all. Called after every event."""
        now = time.monotonic()
        if force:
            for connection in list(self._connections):
                self._close(connection)
        is_due = now - self._checked_at >= self.limits.check_seconds
        if is_due or self._received_bytes > _RECEIVED_BETWEEN_CHECKS:
            self._checked_at, self._received_bytes = now, 0
            self._check(now)
            self._check_memory(now)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        super().wait_for_and_dispatch_events(min(timeout, self.limits.check_seconds))

    def _cap_keepalive(self, deadline: float) -> None:
        self._stops_at = deadline

    # Events of a connection.

    def _on_ready(self, connection: Connection, _raw: Any) -> None:
        if not connection.is_watched_for:
            return  # an earlier event has started a thread, or closed it
        if connection.is_watched_for == selectors.EVENT_WRITE:
            self._flush(connection)
            return
        with self._ending_at_errors(connection):
            received = connection.receive(_RECEIVE_BYTES)
            if received == 0:
                self._close(connection)
            elif received is not None:
                self._received_bytes += received
                if connection.phase is Phase.READING:
                    self._advance(connection)

    def _advance(self, connection: Connection) -> None:
        """Start a thread for the next request of *connection*, or wait for the rest of it."""
        is_complete = connection.next_request()
        if connection.is_surplus and not (is_complete and liveness.is_asked(connection.request)):
            if is_complete or connection.reader.is_in_body:
                self._refuse_surplus(connection)
            return
        if is_complete:
            self._watch(connection, 0)
            connection.enter(Phase.RUNNING)
            if liveness.is_asked(connection.request):
                self._answer_liveness(connection)
            else:
                self.enqueue_req(connection)
            return
        if connection.reader.wants_continue:
            connection.reader.wants_continue = False
            with contextlib.suppress(OSError):
                connection.sock.sendall(_CONTINUE)
        self._watch(connection, selectors.EVENT_READ)

    def _answer_liveness(self, connection: Connection) -> None:
        """Answer here, because all threads may be busy. What follows on the connection waits for its turn."""
        is_last = self._stops_at is not None or not self.cfg.keepalive or connection.is_surplus
        stays_open = False
        with contextlib.suppress(OSError):
            stays_open = liveness.answer(connection.request, connection.sock, self.cfg, is_last=is_last)
        self.method_queue.defer(self._go_on, connection, stays_open)

    def _go_on(self, connection: Connection, stays_open: bool) -> None:
        """Read the next request of *connection*, or close it, when the written answer is sent."""
        connection.request = None
        connection.requests += 1
        connection.enter(Phase.SENDING if stays_open else Phase.CLOSING)
        self._flush(connection)

    @contextlib.contextmanager
    def _ending_at_errors(self, connection: Connection) -> Iterator[None]:
        """Answer a refusal. An unexpected error ends only *connection*: the worker serves many."""
        try:
            yield
        except Refusal as refusal:
            self._refuse(connection, refusal)
        except Exception:
            self.log.exception("reading a request from %s failed", connection.host)
            self._end(connection)

    def _flush(self, connection: Connection) -> None:
        """Send more of the answer; if all is sent, go on as the phase of *connection* says."""
        if connection not in self._connections:
            return
        connection.sock.flush()
        if connection.sock.is_broken:
            if connection.phase is not Phase.RUNNING:
                self._close(connection)
        elif connection.sock.unsent_bytes:  # held until ``_check`` finds that its time has come
            self._watch(connection, 0 if connection.sock.is_held else selectors.EVENT_WRITE)
        elif connection.phase is Phase.SENDING:
            connection.enter(Phase.READING)
            with self._ending_at_errors(connection):
                self._advance(connection)
        elif connection.phase is Phase.CLOSING:
            self._linger(connection)
        elif connection.phase is Phase.RUNNING:
            self._watch(connection, 0)

    def _refuse(self, connection: Connection, refusal: Refusal) -> None:
        self.log.info("%s %s from %s: %s", refusal.status, refusal.code, connection.host, refusal.detail)
        self._answer_refusal(connection, refusal)

    def _refuse_surplus(self, connection: Connection) -> None:
        self._addresses.log_refused(connection.host)
        self._answer_refusal(connection, _TOO_MANY)

    def _answer_refusal(self, connection: Connection, refusal: Refusal) -> None:
        connection.enter(Phase.CLOSING)
        with contextlib.suppress(OSError):
            connection.sock.sendall(refusal.answer())
        self._flush(connection)

    def _linger(self, connection: Connection) -> None:
        """Read until the client closes: closing earlier could take the answer away from it."""
        try:
            connection.linger()
        except OSError:
            self._close(connection)
        else:
            self._watch(connection, selectors.EVENT_READ)

    def _watch(self, connection: Connection, events: int) -> None:
        """Call ``_on_ready`` at *events* of *connection*, and at no others."""
        if events == connection.is_watched_for:
            return
        if not events:
            self.poller.unregister(connection.raw)
        elif connection.is_watched_for:
            self.poller.modify(connection.raw, events, partial(self._on_ready, connection))
        else:
            self.poller.register(connection.raw, events, partial(self._on_ready, connection))
        connection.is_watched_for = events

    def _close(self, connection: Connection) -> None:
        if connection in self._connections:
            self._watch(connection, 0)
            connection.close()
            self._connections.remove(connection)
            self._addresses.remove(connection.host)
            self.nr_conns = len(self._connections)

    # Deadlines and limits.

    def _check(self, now: float) -> None:
        """End overdue connections, and the oldest while all connections hold too many bytes."""
        for connection in list(self._connections):
            if connection.phase is Phase.READING:
                self._check_reading(connection, now)
            elif connection.is_overdue(now):
                self._end(connection)
            elif connection.sock.unsent_bytes and not connection.is_watched_for:
                self._flush(connection)
        while sum(each.held_bytes for each in self._connections) > self.limits.most_buffered_bytes:
            holding = [each for each in self._connections if each.held_bytes and each.can_be_ended]
            if not holding:
                return
            self._end_oldest(holding)

    def _check_memory(self, now: float) -> None:
        """Begin to stop if this process has grown too large: gunicorn starts another when it has ended."""
        if self.alive and (reason := self._replacement.reason(now)):
            self.log.warning("web process %d ends and is replaced: %s", self.pid, reason)
            self.alive = False

    def _check_reading(self, connection: Connection, now: float) -> None:
        if connection.is_surplus and now - connection.since > self.limits.surplus_seconds:
            self._refuse_surplus(connection)
            return
        refusal = connection.late(now, self.cfg.keepalive)
        if refusal is None and (self._stops_at is None or now < self._stops_at):
            return
        if not connection.is_idle:
            self._refuse(connection, refusal or _STOPPING)
            return
        self._on_ready(connection, connection.raw)  # bytes that arrived before this check count
        if connection.is_idle:
            self._close(connection)

    def _end(self, connection: Connection) -> None:
        """End *connection* now; a thread that is answering it finds out at its next write."""
        connection.sock.break_off()
        if connection.phase is not Phase.RUNNING:
            self._close(connection)

    def _end_surplus(self, host: str) -> None:
        """End the oldest connection that the client at *host* has beyond its limit."""
        client = client_of(host)
        ended = [each for each in self._connections if each.is_surplus and client_of(each.host) == client]
        if ended:
            self._addresses.log_refused(host)
            self._end(min(ended, key=lambda each: each.since))

    def _make_room(self) -> None:
        """End one connection that no thread works for, if there is one; first those between two requests."""
        waiting = [each for each in self._connections if each.phase is not Phase.RUNNING]
        if waiting:
            self._end_oldest([each for each in waiting if each.is_between_requests] or waiting)

    def _end_oldest(self, connections: Sequence[Connection]) -> None:
        """End the oldest of *connections* of the address that has the most of them.

        One client with many slow connections loses its own.
        """
        count = Counter(each.host for each in connections)
        oldest = min(connections, key=lambda each: (-count[each.host], each.since))
        if oldest.phase is Phase.READING and not oldest.is_idle:
            self._refuse(oldest, _BUSY)
        self._end(oldest)
