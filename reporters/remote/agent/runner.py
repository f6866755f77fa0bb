"""The agent's side of the run server: started when a run is due, ended when none has been for a while."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from reporters.containment import has_earlier_lives
from reporters.remote.agent.jobs import UNWRITTEN, EndEarlierRuns, Message, RunJob, StopRun

IDLE_SECONDS = 120.0
_LOOK_SECONDS = 300.0  # between two looks for processes of earlier runs
_CODE = "import sys; sys.path.insert(0, {path!r}); from reporters.remote.agent.run_server import main; main()"
_END_SECONDS = 90.0


class RunnerUnavailable(Exception):
    """The run server cannot be started; the message has the reason."""


@dataclass(frozen=True)
class RunEnd:
    """The end of the process of the run *name*.

    *status* is the exit status, -n by signal n, and None if the run server was killed.
    """

    name: str
    status: int | None
    cpu_seconds: float

    @property
    def how(self) -> str:
        if self.status is None:
            return "was killed"
        if self.status == UNWRITTEN:
            return "could not write its report: the disk of the state directory is full, or fails"
        return (
            f"was ended by signal {-self.status}" if self.status < 0 else f"ended with status {self.status}"
        )


class Runner:
    """Starts runs, by the packages in the directory *code*.

    *on_end* is called in a thread of the runner with the end of each run, and *on_killed* with the number of
    processes that earlier runs left and that were killed.
    """

    def __init__(
        self, code: Path, on_end: Callable[[RunEnd], None], on_killed: Callable[[int], None] = lambda _: None
    ) -> None:
        self._start = _CODE.format(path=str(code))
        self._on_end, self._on_killed = on_end, on_killed
        self._changing = threading.RLock()
        self._server: subprocess.Popen[bytes] | None = None
        self._in_flight: dict[str, subprocess.Popen[bytes]] = {}
        self._used_at = 0.0
        self._look_at = 0.0

    def start(self, job: RunJob) -> None:
        """Start *job*. Raises RunnerUnavailable if that is impossible now."""
        with self._changing:
            server = self._running()
            self._in_flight[job.name] = server
            self._used_at = time.monotonic()
            try:
                self._send(server, job)
            except OSError as error:
                del self._in_flight[job.name]
                raise RunnerUnavailable(f"the process that starts runs is gone: {error.strerror}") from None

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        """Send a signal to the process of a run; SIGTERM ends it after its cleanup."""
        with self._changing, contextlib.suppress(OSError):
            if name in self._in_flight:
                self._send(self._in_flight[name], StopRun(name, number))

    def rest(self) -> None:
        """End the run server if no run has started for a while: it has 20 MB of memory."""
        with self._changing:
            is_idle = not self._in_flight and time.monotonic() - self._used_at > IDLE_SECONDS
            if self._server is not None and is_idle:
                self._close()

    def end_earlier_runs(self) -> None:
        """Have the processes killed that runs of a killed reporter left, if there are any.

        Looks for them at the first call, and then once in a while; the run server starts only to kill some.
        """
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        if not has_earlier_lives():
            return
        with self._changing, contextlib.suppress(RunnerUnavailable, OSError):
            self._send(self._running(), EndEarlierRuns())
            self._used_at = now

    def close(self) -> None:
        """End the run server and, through it, every run; return when it has ended."""
        with self._changing:
            server = self._server
            self._close()
        if server is not None:
            try:
                server.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()

    def _close(self) -> None:
        if self._server is not None and self._server.stdin is not None:
            with contextlib.suppress(OSError):
                self._server.stdin.close()
        self._server = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._server is not None and self._server.poll() is None:
            return self._server
        try:
            server = subprocess.Popen(
                [sys.executable, "-I", "-c", self._start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise RunnerUnavailable(f"cannot start {sys.executable}: {error.strerror}") from None
        self._server = server
        threading.Thread(target=self._follow, args=(server,), name="ended runs", daemon=True).start()
        return server

    def _send(self, server: subprocess.Popen[bytes], message: Message) -> None:
        if server.stdin is None:
            raise AssertionError("a pipe is missing")
        rest = memoryview(message.to_line())
        while rest:
            rest = rest[os.write(server.stdin.fileno(), rest) :]

    def _follow(self, server: subprocess.Popen[bytes]) -> None:
        """Announce ended runs until the server ends; then those that it can no longer announce."""
        if server.stdout is None:
            raise AssertionError("a pipe is missing")
        with open(os.dup(server.stdout.fileno()), encoding="utf-8") as lines:  # noqa: PTH123  # of a descriptor
            for line in lines:
                ended = json.loads(line)
                if "killed_processes" in ended:
                    self._on_killed(ended["killed_processes"])
                    continue
                self._end(RunEnd(ended["run"], ended["status"], ended["cpu_seconds"]))
        server.wait()
        server.stdout.close()
        with self._changing:
            lost = sorted(name for name, started_by in self._in_flight.items() if started_by is server)
            if self._server is server:
                self._server = None
                self._look_at = 0.0  # it was killed
        for name in lost:
            self._end(RunEnd(name, None, 0.0))

    def _end(self, end: RunEnd) -> None:
        with self._changing:
            self._in_flight.pop(end.name, None)
            self._used_at = time.monotonic()
        self._on_end(end)
