"""Start the runs of the agent: a process without threads, which forks for each run.

The agent writes messages to stdin and reads announcements from stdout, both lines of JSON. A run's process
writes its report to a file and ends. At the end of stdin the server ends the runs and itself: so nothing is
left when the agent is killed. When the server itself is killed, the kernel sends SIGTERM to the runs'
processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType

import probes
from reporters import batch, host, shells, transfers
from reporters.config import Assignment
from reporters.containment import end_earlier_lives, end_earlier_lives_once
from reporters.remote.agent.jobs import UNWRITTEN, EndEarlierRuns, Message, RunJob, StopRun, parse_message
from reporters.remote.files import write_atomically
from reporters.report import Report, to_json
from reporters.run import identity, run
from reporters.skipped import skipped

STOP_SECONDS = 75.0  # longer than the cleanup of a run
_PR_SET_PDEATHSIG = 1
_STOPPED = 143  # exit status of a process that SIGTERM ended


class RunServer:
    """Serves the messages at descriptor *source*, and announces ended runs at descriptor *target*.

    *end_earlier* kills the processes of earlier runs and returns how many there were.
    """

    def __init__(
        self,
        source: int,
        target: int,
        fork: Callable[[], int] = os.fork,
        end_earlier: Callable[[], int] = end_earlier_lives,
    ) -> None:
        self._source, self._target, self._fork, self._end_earlier = source, target, fork, end_earlier
        self._runs: dict[int, str] = {}
        self._received = b""
        self._woken, wake = os.pipe()
        for end in (self._woken, wake):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the agent decides
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve until the end of the source; then end all runs."""
        self._announce_killed(end_earlier_lives_once())
        poller = select.poll()
        for descriptor in (self._source, self._woken):
            poller.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poller.poll():
                if descriptor == self._source and not self._receive():
                    self._end_all()
                    return
            self._reap()

    def _receive(self) -> bool:
        """Read and obey messages; return whether there may be more."""
        data = os.read(self._source, 1 << 20)
        self._received += data
        while b"\n" in self._received:
            line, _, self._received = self._received.partition(b"\n")
            self._obey(parse_message(line))
        return bool(data)

    def _obey(self, message: Message) -> None:
        if isinstance(message, EndEarlierRuns):
            self._announce_killed(self._end_earlier())
            return
        if isinstance(message, StopRun):
            for pid, name in self._runs.items():
                if name == message.name:
                    os.kill(pid, message.signal_number)
            return
        with contextlib.suppress(Exception):  # the run reports it; here it only saves time for later runs
            _load_modules(message.assignment)
        try:
            pid = self._fork()
        except OSError as error:
            self._not_started(message, f"cannot start a process for the run: {error.strerror}")
            return
        if pid == 0:
            self._run(message)
        self._runs[pid] = message.name
        host.environment()  # while the first run is running: later ones find the versions of the tools here

    def _not_started(self, job: RunJob, reason: str) -> None:
        """Write the report here: the account has too many processes, and other runs must go on."""
        status = execute(job if job.outcome else replace(job, outcome="broken", reason=reason))
        self._announce({"run": job.name, "status": status or 1, "cpu_seconds": 0.0})

    def _run(self, job: RunJob) -> None:
        """Run *job* in this child process. Does not return."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, _end_run)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            parent = os.getppid()
            with contextlib.suppress(AttributeError, OSError):  # other systems than Linux
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, self._source)
            os.dup2(null, self._target)
            if os.getppid() == parent:
                status = execute(job)
        except SystemExit:
            status = _STOPPED
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        while self._runs:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            name = self._runs.pop(pid, None)
            if name is not None:
                code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                if code < 0:
                    self._announce_killed(self._end_earlier())
                self._announce({"run": name, "status": code, "cpu_seconds": used.ru_utime + used.ru_stime})

    def _announce_killed(self, processes: int) -> None:
        if processes:
            self._announce({"killed_processes": processes})

    def _announce(self, document: Mapping[str, object]) -> None:
        with contextlib.suppress(OSError):  # the agent is gone
            os.write(self._target, f"{json.dumps(document)}\n".encode())

    def _end_all(self) -> None:
        until = time.monotonic() + STOP_SECONDS
        self._send_all(signal.SIGTERM)
        while self._runs and time.monotonic() < until:
            select.select([self._woken], [], [], 1.0)
            self._reap()
        self._send_all(signal.SIGKILL)

    def _send_all(self, number: int) -> None:
        for pid in self._runs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _load_modules(assignment: Assignment) -> None:
    """Load what the run will use: a fork keeps nothing that its child loads."""
    identity(assignment.probe, probes.load(assignment.probe))
    for resource in assignment.resources.values():
        shells.load(resource.shell["kind"])
        transfers.load(resource.transfer["kind"])
        batch.load(resource.batch["kind"])


def execute(job: RunJob) -> int:
    """Run *job* and write its result; return 0, or ``UNWRITTEN`` if it cannot be written.

    The result is not flushed to disk: the agent puts it into the spool at once, and flushes that. A power
    failure before loses the report, as one during the run does.
    """
    result = to_json(_report(job))
    try:
        write_atomically(job.result, result, 0o600, flushes=False)
    except OSError as error:
        sys.stderr.write(f"cannot write the report {job.result}: {error.strerror}\n")
        return UNWRITTEN
    return 0


def _report(job: RunJob) -> Report:
    if not job.outcome:
        return run(job.assignment)
    return replace(skipped(job.assignment, job.reason), outcome=job.outcome)


def _end_run(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the cleanup comes next
    sys.exit(_STOPPED)


def main() -> None:
    """Serve stdin and stdout."""
    RunServer(0, 1).serve()
