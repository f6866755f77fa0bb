"""The ``probes.grid.Grid`` of one run: its operations on the resources of the assignment.

Thread-safe: probes use several resources at once. The first use of any resource opens all connections of the
run in parallel; a failed connection raises only where its resource is used. The run's deadline limits every
wait.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from probes.base import InvalidParameters, ProbeFailed, in_parallel
from probes.grid import Capabilities, CopyOptions, Location, Transferred
from reporters import resolve, scratch
from reporters.base import CleanupFailed, CredentialUnfit, End, FileTransfer
from reporters.cgroup import own_group
from reporters.config import Assignment
from reporters.containment import Containment, ProcessLimits, end_earlier_lives_once
from reporters.deadline import BoundedShell, Deadline
from reporters.resource_session import GridJob, ResourceSession, check_answers, serving
from reporters.series_state import SeriesState, StateNotKept
from reporters.usage import ResourceUsage, UsageMeter

_PLAIN = CopyOptions()
_PATH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)


class RunGrid:
    """The grid of one run. Each line of the run's log is a call of *log* with its text and level."""

    def __init__(self, assignment: Assignment, deadline: Deadline, log: Callable[[str, str], None]) -> None:
        _check(assignment)
        self._containment = Containment(_limits(assignment), own_group())
        self._survivors = 0
        self._sessions = {
            name: ResourceSession(resource, assignment, deadline, self._containment, self.log)
            for name, resource in assignment.resources.items()
        }
        self._deadline = deadline
        self._expected_seconds = assignment.expected_seconds
        directory = assignment.state_directory
        self._state = SeriesState(Path(directory), assignment.series) if directory else None
        self._write_log = log
        self._opening = threading.Lock()
        self._connected: dict[str, Future[BoundedShell]] = {}
        self._cleaned_up = False
        self._meter = UsageMeter()
        if earlier := end_earlier_lives_once():
            self.log(f"ended {earlier} processes of runs whose reporter was killed", "info")

    def shell(self, resource: str) -> BoundedShell:
        """Return the connected shell of *resource*. Raises ProbeFailed if the connection failed."""
        self._session(resource)
        with self._opening:
            if not self._connected:
                self._connect_all()
        return self._connected[resource].result()

    def login(self, resource: str) -> float:
        """Log in again, run ``true``, log out; return the seconds of the login and ``true``."""
        return self._session(resource).login()

    def address(self, resource: str) -> str:
        """Return the host name or IP address by which other sites reach *resource*.

        Raises:
            ResourceUnfit: no address is configured.
        """
        return self._session(resource).address()

    @contextlib.contextmanager
    def serving(self, resource: str, argv: Sequence[str], *, within_seconds: float) -> Iterator[str]:
        """Run *argv* at *resource* while in this context; yield the first line of its output.

        The line must come *within_seconds*.
        """
        with serving(self.shell(resource), argv, self._deadline, within_seconds) as first_line:
            yield first_line

    def capabilities(self, source: str, target: str) -> Capabilities:
        """Return the features that copies from *source* to *target* support."""
        return self._transfer(source, target).capabilities

    def copy(self, source: Location, target: Location, options: CopyOptions = _PLAIN) -> Transferred:
        """Copy one file directly from *source* to *target*."""
        route = f"{source.resource}:{source.path} to {target.resource}:{target.path}"
        transfer = self._transfer(source.resource, target.resource)
        with self._deadline.bounding(math.inf, f"copying {route}", target.resource) as limit_seconds:
            copy = transfer.copy(source.path, target.path, options=options, timeout_seconds=limit_seconds)
        self._meter.copied(source.resource, target.resource, copy.bytes)
        self.log(f"copied {route}: {copy.bytes} bytes in {copy.seconds:.3f} s, {copy.streams} streams")
        return copy

    def submit(self, resource: str, argv: Sequence[str], *, cpus: int, wall_seconds: float) -> GridJob:
        """Submit a job that runs *argv* in the run's scratch directory at *resource*."""
        directory = self.scratch(resource)
        job = self._session(resource).submit(argv, directory, cpus, wall_seconds)
        self.log(f"submitted a job at {resource}: {cpus} cpus, at most {wall_seconds:g} s")
        return GridJob(job, resource, self._deadline, self._meter.job(resource, cpus))

    def scratch(self, resource: str) -> str:
        """Return the run's directory at *resource*; the first call creates it."""
        shell = self.shell(resource)
        with self._deadline.bounding(math.inf, f"making a scratch directory at {resource}", resource):
            return self._session(resource).scratch(shell)

    def expected_seconds(self, metric: str) -> float | None:
        """Return the upper bound of the forecast of *metric*, in seconds; None if there was no forecast.

        The forecast was issued before the run started.
        """
        return self._expected_seconds.get(metric)

    def remaining_seconds(self) -> float:
        """Return the seconds until the run's time limit."""
        return self._deadline.remaining_seconds

    def recall(self) -> str | None:
        """Return the text that an earlier run of the series remembered last, if the reporter keeps any.

        Raises:
            ProbeFailed: the text cannot be read.
        """
        try:
            return self._state.read() if self._state else None
        except StateNotKept as error:
            raise ProbeFailed(str(error)) from None

    def remember(self, text: str) -> bool:
        """Keep *text* for later runs of the series; return whether this reporter keeps any.

        Raises:
            ProbeFailed: the text cannot be written.
        """
        if self._state is None:
            return False
        try:
            self._state.write(text)
        except StateNotKept as error:
            raise ProbeFailed(str(error)) from None
        return True

    def check_credentials(self, resource: str) -> None:
        """Raise ProbeFailed unless the login to *resource* works and its credentials outlast the run.

        The credentials are checked before the login, since the error of a check says more than a refused
        login.
        """
        session = self._session(resource)
        needed_seconds = self._expected_seconds.get("total.seconds", 0.0)
        credentials = (*session.shell.credentials(), *self._transfer(resource, resource).credentials())
        try:
            for credential in credentials:
                credential.check(needed_seconds=needed_seconds)
        except CredentialUnfit as error:  # add the resource, which a credential does not know
            raise CredentialUnfit(error.message, resource=resource, stderr_tail=error.stderr_tail) from None
        check_answers(self.shell(resource))

    def check_scratch(self, resource: str, needed_bytes: int) -> None:
        """Raise ProbeFailed unless the scratch directory is writable and has *needed_bytes* free."""
        scratch.check_space(self.shell(resource), self._session(resource).resource.scratch, needed_bytes)

    def check_tools(self, resource: str, tools: Sequence[str]) -> None:
        """Raise ProbeFailed if *tools* are missing from the PATH at *resource*; the message names them."""
        scratch.check_tools(self.shell(resource), tools)

    def clean_up(self) -> None:
        """Cancel jobs, remove scratch directories and close connections, at all resources in parallel.

        A second call does nothing.

        Raises:
            CleanupFailed: something was left behind; the message names each such resource and the reason.
        """
        if self._cleaned_up:
            return
        self._cleaned_up = True
        results = in_parallel(self._clean_up_at, self._connected)
        self._end_processes()
        failures = [(name, error) for name, error in results if error]
        if failures:
            reasons = "; ".join(f"{name}: {error.message}" for name, error in failures)
            name, first = failures[0]
            raise CleanupFailed(
                f"cannot clean up at {reasons}",
                resource=name,
                exit_status=first.exit_status,
                stderr_tail=first.stderr_tail,
            )

    def usage(self) -> dict[str, ResourceUsage]:
        """Return the usage so far, by resource."""
        return self._meter.read()

    def survivors(self) -> int:
        """Return how many processes at the reporter had to be killed; known after ``clean_up``."""
        return self._survivors

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the run's log."""
        self._write_log(text, level)

    def _end_processes(self) -> None:
        """End what is left of the run's programs at the reporter's host."""
        self._survivors, cpu_seconds = self._containment.end()
        if cpu_seconds:
            self.log(f"the run's programs at the reporter used {cpu_seconds:.3f} s of CPU time")
        if self._survivors:
            self.log(
                f"{self._survivors} processes at the reporter ignored SIGTERM and were killed", "warning"
            )

    def _session(self, resource: str) -> ResourceSession:
        if resource not in self._sessions:
            raise InvalidParameters(f"there is no resource {resource!r} in this run")
        return self._sessions[resource]

    def _transfer(self, source: str, target: str) -> FileTransfer:
        sessions = (self._session(source), self._session(target))
        return resolve.transfer_between(*(End(session.resource, session.shell) for session in sessions))

    def _connect_all(self) -> None:
        pool = ThreadPoolExecutor(max_workers=len(self._sessions), thread_name_prefix="connect")
        self._connected = {name: pool.submit(session.connect) for name, session in self._sessions.items()}
        pool.shutdown(wait=False)

    def _clean_up_at(self, resource: str) -> tuple[str, ProbeFailed | None]:
        try:
            if self._connected[resource].exception() is None:
                self._sessions[resource].clean_up()
        except ProbeFailed as error:
            return resource, error
        finally:
            self._sessions[resource].shell.close()
        return resource, None


def _limits(assignment: Assignment) -> ProcessLimits:
    """Return limits that a process can exceed only if it outlives the run: each processor could be busy."""
    seconds = assignment.limit_seconds + assignment.cleanup_seconds
    return ProcessLimits(math.ceil(seconds * (os.cpu_count() or 1)), assignment.max_file_bytes)


def _check(assignment: Assignment) -> None:
    """Raise InvalidParameters for names that are unsafe in a path and for invalid resources."""
    for name in (assignment.series, *assignment.resources):
        if not _PATH_NAME.fullmatch(name):
            expected = "letters, digits and ._-, beginning with a letter, a digit or _"
            raise InvalidParameters(f"the name {name!r} becomes part of a path: expected {expected}")
    for resource in assignment.resources.values():
        resolve.check(resource)
