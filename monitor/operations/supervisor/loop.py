"""The supervisor's loop: one thread that waits for guards, deadlines and stop requests."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from .guarded import Guarded
from .lock import only_supervisor
from .service import Service, start_order
from .status import ServiceStatus, SupervisorStatus, write_status
from .watched import Watched

logger = logging.getLogger(__name__)
Listener = Callable[[str, ServiceStatus], None]


class NotUp(RuntimeError):
    """Some services did not come up in time; the message names them and quotes the ends of their logs."""


class Supervisor:
    """Keeps *services* running from ``run`` until ``request_stop``.

    Args:
        services: in any order; see ``Service.depends_on``.
        status_file: ``supervisor.json``, rewritten at every change; its directory also holds the locks.
        log_dir: directory of ``<name>.log``, to which each service's output is appended.
        on_change: called in the loop's thread with each new status of each service; must not block. Its
            exceptions are logged.

    Raises:
        ValueError: the services cannot be ordered.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        status_file: Path,
        log_dir: Path,
        on_change: Listener | None = None,
    ) -> None:
        self._status_file = status_file
        self._log_dir = log_dir
        self._on_change = on_change
        self._watched = {
            service.name: Watched(service, log_dir / f"{service.name}.log", self._note_change)
            for service in start_order(services)
        }
        self._stops_requested = 0
        self._wake_reading, self._wake_writing = os.pipe()
        os.set_blocking(self._wake_writing, False)
        # ``run`` does not close them: a late ``request_stop`` must not write to a reused descriptor.
        weakref.finalize(self, _close, self._wake_reading, self._wake_writing)
        self._all_up = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Start all services, restart services that end, stop all on request; return when no process is left.

        Raises:
            AlreadySupervised: another supervisor, or a service of an earlier supervisor, still runs in the
                directory of *status_file*.
        """
        self._status_file.parent.mkdir(parents=True, exist_ok=True)
        self._log_dir.mkdir(parents=True, exist_ok=True)
        try:
            with only_supervisor(self._status_file.parent) as hold:
                self._write_status()
                self._note_whether_all_up()  # without any service, all are up
                try:
                    self._loop(hold)
                finally:
                    self._kill_and_collect_all()
        except BaseException as failure:
            self._failure = failure  # before the events: ``wait_until_up`` reads it after them
            raise
        finally:
            self._ended.set()
            self._all_up.set()  # ``wait_until_up`` checks ``_ended`` too

    def request_stop(self) -> None:
        """Stop all services, each after the services that depend on it; a second call kills all services.

        May be called from any thread and from signal handlers.
        """
        self._stops_requested += 1
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_writing, b"!")

    def wait_until_up(self, timeout_seconds: float) -> None:
        """Block until every service has come up.

        Raises:
            NotUp: a service did not come up within *timeout_seconds*, or the supervisor has ended.
        """
        in_time = self._all_up.wait(timeout_seconds)
        if not in_time or self._ended.is_set():
            raise self._failure or NotUp(self._what_is_not_up())

    def wait_until_ended(self) -> None:
        """Block until no service is left: after a request to stop, or because the supervisor failed."""
        self._ended.wait()

    @contextlib.contextmanager
    def running(self, *, up_within_seconds: float) -> Iterator[Supervisor]:
        """Run the loop in a thread while the context is open.

        The context opens when every service has come up. The loop then restarts services that end. When the
        context closes, all services are stopped, and no process is left.

        Raises:
            NotUp: a service did not come up within *up_within_seconds*.
            AlreadySupervised: another supervisor, or a service of an earlier supervisor, still runs in the
                directory of *status_file*.
        """
        thread = threading.Thread(target=self._run_and_keep_failure, name="supervisor")
        thread.start()
        try:
            self.wait_until_up(up_within_seconds)
            yield self
        finally:
            self.request_stop()
            self._join(thread)
        if self._failure is not None:
            raise self._failure

    def in_foreground(self) -> None:
        """Call ``run``; SIGINT, SIGTERM or SIGHUP stops the services, a second signal kills the services.

        Call it in the main thread only.
        """
        handlers = {
            number: signal.signal(number, lambda *_: self.request_stop())
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            self.run()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _join(self, thread: threading.Thread) -> None:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt:
                self.request_stop()

    def _run_and_keep_failure(self) -> None:
        with contextlib.suppress(BaseException):  # ``running`` raises it in its thread
            self.run()

    def _loop(self, hold: int) -> None:
        killed = False
        while not self._is_over():
            if self._stops_requested:
                self._stop_next()
                if self._stops_requested > 1 and not killed:
                    killed = True
                    self._kill_all()
            else:
                for watched in self._startable():
                    watched.advance(hold)
            self._wait()

    def _is_over(self) -> bool:
        return bool(self._stops_requested) and all(
            watched.status.state == "stopped" for watched in self._watched.values()
        )

    def _startable(self) -> list[Watched]:
        """Return the services that have run before, and the services whose dependencies are up."""
        return [
            watched
            for watched in self._watched.values()
            if watched.has_started
            or all(self._watched[name].status.state == "up" for name in watched.service.depends_on)
        ]

    def _stop_next(self) -> None:
        """Stop every service whose dependents have stopped."""
        for watched in reversed(self._watched.values()):
            dependents = (
                other for other in self._watched.values() if watched.service.name in other.service.depends_on
            )
            if watched.status.state != "stopped" and all(
                other.status.state == "stopped" for other in dependents
            ):
                watched.stop()

    def _kill_all(self) -> None:
        for watched in self._watched.values():
            watched.kill()

    def _kill_and_collect_all(self) -> None:
        """Kill services that still run, as after an exception in the loop; wait until all have ended."""
        self._kill_all()
        for watched in self._watched.values():
            while watched.guarded is not None:
                select.select([watched.guarded], [], [])
                watched.receive()

    def _wait(self) -> None:
        """Sleep until a guard sends a message, a stop is requested or a service is due."""
        running = [watched for watched in self._watched.values() if watched.guarded is not None]
        if self._stops_requested:
            timeout = 0.0 if self._is_over() else None
        else:
            due = [watched.seconds_to_next() for watched in self._startable()]
            timeout = min((seconds for seconds in due if seconds is not None), default=None)
        sources: list[int | Guarded] = [self._wake_reading]
        sources += [watched.guarded for watched in running if watched.guarded is not None]
        ready = select.select(sources, [], [], timeout)[0]
        if self._wake_reading in ready:
            os.read(self._wake_reading, 4096)
        for watched in running:
            if watched.guarded in ready:
                watched.receive()

    def _note_change(self, watched: Watched) -> None:
        self._write_status()
        if self._on_change is not None:
            try:
                self._on_change(watched.service.name, watched.status)
            except Exception:
                logger.exception("a listener failed; the services go on")
        self._note_whether_all_up()

    def _note_whether_all_up(self) -> None:
        if all(watched.status.state == "up" for watched in self._watched.values()):
            self._all_up.set()

    def _write_status(self) -> None:
        services = {name: watched.status for name, watched in self._watched.items()}
        with contextlib.suppress(OSError):  # a full disk must not stop the services
            write_status(self._status_file, SupervisorStatus(os.getpid(), datetime.now(UTC), services))

    def _what_is_not_up(self) -> str:
        not_up = [watched for watched in self._watched.values() if watched.status.state != "up"]
        return "; ".join(watched.describe() for watched in not_up) or "stopped before everything was up"


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
