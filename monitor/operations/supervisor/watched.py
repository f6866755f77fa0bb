"""The life cycle of one service: a state machine that the supervisor's loop advances."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from . import stalls
from .guard import descendants
from .guarded import Guarded
from .service import MOST_START_SECONDS, Service, backoff_seconds
from .status import ServiceStatus

READY_POLL_SECONDS = 0.05
START_LOOK_SECONDS = 1.0  # how often the processor time of a service that starts is read
ALIVE_POLL_SECONDS = 5.0
HEALTHY_SECONDS = 30.0  # the back-off starts over once a service has been up for this long
LOG_MAX_BYTES = 10_000_000
LOG_TAIL_BYTES = 300


class Watched:
    """One service with its state.

    ``advance`` performs the step that is due; *changed* is called at each change of the state.
    """

    def __init__(self, service: Service, log_file: Path, changed: Callable[[Watched], None]) -> None:
        self.service = service
        self.log_file = log_file
        self.guarded: Guarded | None = None
        self.status = ServiceStatus("starting", datetime.now(UTC))
        self._changed = changed
        self._failures = 0
        self._due: float | None = 0.0  # on the monotonic clock; None: only the end of the service is awaited
        self._started = 0.0
        self._up_since: float | None = None
        self._patience = stalls.Patience(stalls.Signs(0.0))
        self._reason: str | None = None  # why the supervisor killed it, reported instead of the exit status

    @property
    def has_started(self) -> bool:
        """Return whether the service was ever started: restarts do not wait for dependencies."""
        return self.guarded is not None or self.status.state != "starting"

    def seconds_to_next(self) -> float | None:
        """Return the seconds until ``advance`` is due; None while only a message of the guard is awaited."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def advance(self, hold: int) -> None:
        """Start or check the service, if that is due. Must not be called after ``stop``.

        *hold* is the descriptor that the guard keeps open (``lock.only_supervisor``).
        """
        if self._due is None or time.monotonic() < self._due:
            return
        if self.guarded is None:
            self._start(hold)
        elif self.status.state == "starting":
            self._check_ready()
        else:
            self._check_alive()

    def receive(self) -> None:
        """Read the guard's messages and update the state."""
        if self.guarded is None:
            return
        self.guarded.receive()
        if self.guarded.has_ended:
            self._handle_end(self.guarded.exit_status)
        elif self.guarded.pid != self.status.pid:
            self._handle_pid()

    def stop(self) -> None:
        if self.guarded is None:
            self._become("stopped")
        elif self.status.state != "stopping":
            self._become("stopping")
            self.guarded.stop()
        self._due = None

    def describe(self) -> str:
        """Return one line for users: the state of the service and the end of its log."""
        tail = b""
        with contextlib.suppress(FileNotFoundError), self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - LOG_TAIL_BYTES))
            tail = log.read()
        last_lines = " | ".join(tail.decode(errors="replace").splitlines()[-3:])
        how = f", {self.status.last_exit}" if self.status.last_exit else ""
        return f"{self.service.name} is {self.status.state}{how}; {self.log_file} ends with: {last_lines}"

    def kill(self) -> None:
        if self.guarded is not None:
            self.guarded.kill()

    def _start(self, hold: int) -> None:
        self._reason = None
        try:
            if self.service.before is not None:
                self.service.before()
            with self._log() as log:
                self.guarded = Guarded(self.service, log, hold=[hold])
        except Exception as error:  # noqa: BLE001 - ``before`` may raise anything; the start is retried
            self._fail(f"cannot start: {error}")
            return
        self._started = time.monotonic()
        self._patience = stalls.Patience(stalls.Signs(self._started, used_seconds=0.0))
        self._become("starting")
        self._due = self._started if self.service.ready else None

    def _handle_pid(self) -> None:
        """Update the status once the guard has sent the service's pid."""
        if self.status.state == "starting" and self.service.ready is None and not self.service.once:
            self._become_up()
        else:
            self._become(self.status.state)

    def _log(self) -> IO[bytes]:
        """Open the log file to append to; a large file is rotated first, and one old file is kept."""
        if self.log_file.exists() and self.log_file.stat().st_size > LOG_MAX_BYTES:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        return self.log_file.open("ab", buffering=0)

    def _check_ready(self) -> None:
        if self.service.ready is None or self.guarded is None:
            return
        if self.service.ready():
            self._become_up()
            return
        now = time.monotonic()
        self._due = now + READY_POLL_SECONDS
        if now - self._patience.last.at >= START_LOOK_SECONDS:
            self._look(answers=False)
        if now - self._started > MOST_START_SECONDS:
            self._kill_because(f"not ready after {MOST_START_SECONDS:g} s")
        elif self._patience.still_seconds > self.service.ready_seconds:
            self._kill_because(f"not ready: no progress for {self.service.ready_seconds:g} s")

    def _check_alive(self) -> None:
        """Check a service that is up; restart it if it hangs."""
        self._look(answers=None if self.service.alive is None else self.service.alive())
        self._due = time.monotonic() + ALIVE_POLL_SECONDS
        if hang := self._patience.hang(self.service.asleep_seconds):
            self._kill_because(hang)

    def _look(self, *, answers: bool | None) -> None:
        pid = self.guarded.pid if self.guarded else None
        signs = stalls.Signs(
            time.monotonic(),
            answers,
            # Finding all processes takes some milliseconds.
            stalls.used_seconds([pid, *descendants(pid)]) if pid and answers is False else None,
            stalls.main_nanoseconds(pid) if pid else None,
            stalls.is_starved(),
        )
        self._patience = self._patience.after(signs)

    def _kill_because(self, reason: str) -> None:
        self._reason = reason
        self._due = None
        if self.guarded is not None:
            self.guarded.kill()

    def _become_up(self) -> None:
        self._up_since = time.monotonic()
        is_checked = self.service.alive is not None or self.service.asleep_seconds is not None
        self._due = self._up_since + ALIVE_POLL_SECONDS if is_checked and not self.service.once else None
        self._patience = stalls.Patience(stalls.Signs(self._up_since))
        self._become("up")

    def _handle_end(self, exit_status: int | None) -> None:
        self.guarded = None
        how = self._reason or describe_exit(exit_status)
        if self.status.state == "stopping":
            self._become("stopped", last_exit=how)
        elif self.service.once and exit_status == 0:
            self._become_up()
        else:
            self._fail(how)

    def _fail(self, how: str) -> None:
        if self._up_since is not None and time.monotonic() - self._up_since >= HEALTHY_SECONDS:
            self._failures = 0
        self._up_since = None
        self._failures += 1
        self._due = time.monotonic() + backoff_seconds(self._failures)
        self._become("restarting", restarts=self.status.restarts + 1, last_exit=how)

    def _become(self, state: str, *, restarts: int | None = None, last_exit: str | None = None) -> None:
        before = self.status
        self.status = ServiceStatus(
            state=state,
            since=before.since if state == before.state else datetime.now(UTC),
            pid=self.guarded.pid if self.guarded else None,
            restarts=before.restarts if restarts is None else restarts,
            last_exit=last_exit or before.last_exit,
        )
        self._changed(self)


def describe_exit(exit_status: int | None) -> str:
    """Describe *exit_status*: a return code as in subprocess, or None if the guard was killed."""
    if exit_status is None:
        return "its guard was killed"
    if exit_status < 0:
        return f"killed by {signal.Signals(-exit_status).name}"
    return f"ended with status {exit_status}"
