"""What a probe may do to sites (``probes.grid.Grid``), over the resources of one assignment.

Thread-safe: probes use several resources at once. All connections of a run are opened together, at the first
use of any; one that fails is an error only for who uses that resource. Every wait ends with the run's limit.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from probes.base import InvalidParameters, ProbeFailed, in_parallel
from probes.grid import Capabilities, CopyOptions, Location, Transferred
from reporters import reach, scratch
from reporters.base import (
    BatchJob,
    BatchSystem,
    CleanupFailed,
    CommandFailed,
    ConnectionLost,
    CredentialUnfit,
    End,
    FileTransfer,
    ResourceUnfit,
)
from reporters.complaints import decisive_line, tail
from reporters.config import Assignment, Resource
from reporters.deadline import BoundedShell, Deadline
from reporters.process import ProcessError, Running
from reporters.report import rfc3339, run_id

_RUN_CHARACTERS = 12
_CREDENTIAL_SECONDS = 60.0
_PLAIN = CopyOptions()
_PATH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)


class Grid:
    """The grid of one run. *log* takes a text and a level."""

    def __init__(self, assignment: Assignment, deadline: Deadline, log: Callable[[str, str], None]) -> None:
        _refuse_unfit(assignment)
        self._sites = {
            name: _Site(resource, assignment, deadline, self.log)
            for name, resource in assignment.resources.items()
        }
        self._deadline = deadline
        self._expected_seconds = assignment.expected_seconds
        self._write_log = log
        self._opening = threading.Lock()
        self._connected: dict[str, Future[BoundedShell]] = {}
        self._cleaned_up = False

    def shell(self, resource: str) -> BoundedShell:
        """The shell of *resource*, connected. Raises ProbeFailed."""
        self._site(resource)
        with self._opening:
            if not self._connected:
                self._connect_all()
        return self._connected[resource].result()

    def login(self, resource: str) -> float:
        """Log in anew, run ``true`` and log out; the seconds of the first two. Raises ProbeFailed."""
        shell = self._site(resource).another_shell()
        began = time.monotonic()
        try:
            shell.connect(timeout_seconds=math.inf)
            shell.check(["true"], timeout_seconds=_CREDENTIAL_SECONDS, doing="run a program after logging in")
            return time.monotonic() - began
        finally:
            shell.close()

    def address(self, resource: str) -> str:
        """The host name or IP address under which other sites reach *resource*. Raises ResourceUnfit."""
        config = self._site(resource).resource
        seen = config.address or config.transfer.get("host") or config.shell.get("host")
        if not seen and config.shell.get("kind") != "local":
            raise ResourceUnfit(
                f"{resource} has no address: set one, as other sites see it", resource=resource
            )
        return str(seen or "127.0.0.1")

    @contextlib.contextmanager
    def serving(self, resource: str, argv: Sequence[str], *, within_seconds: float) -> Iterator[str]:
        """While in this context *argv* runs at *resource*; its value is its first line."""
        running = self.shell(resource).start(argv)
        try:
            with self._deadline.bounding(
                within_seconds, f"starting {argv[0]} at {resource}", resource
            ) as limit:
                running.wait_for_output(lambda text: "\n" in text, limit)
            if "\n" not in running.output:
                raise _not_serving(resource, argv[0], running, within_seconds)
            yield running.output.partition("\n")[0]
        finally:
            running.stop()

    def capabilities(self, source: str, target: str) -> Capabilities:
        """What copies from *source* to *target* can do. Raises ProbeFailed."""
        return self._transfer(source, target).capabilities

    def copy(self, source: Location, target: Location, options: CopyOptions = _PLAIN) -> Transferred:
        """Copy one file directly. Raises ProbeFailed."""
        what = f"{source.resource}:{source.path} to {target.resource}:{target.path}"
        transfer = self._transfer(source.resource, target.resource)
        with self._deadline.bounding(math.inf, f"copying {what}", target.resource) as limit_seconds:
            copy = transfer.copy(source.path, target.path, options=options, timeout_seconds=limit_seconds)
        self.log(f"copied {what}: {copy.bytes} bytes in {copy.seconds:.3f} s, {copy.streams} streams")
        return copy

    def submit(self, resource: str, argv: Sequence[str], *, cpus: int, wall_seconds: float) -> GridJob:
        """Hand in a job that runs in the scratch directory of *resource*. Raises ProbeFailed."""
        directory = self.scratch(resource)
        job = self._site(resource).submit(argv, directory, cpus, wall_seconds)
        self.log(f"submitted a job at {resource}: {cpus} cpus, at most {wall_seconds:g} s")
        return GridJob(job, resource, self._deadline)

    def scratch(self, resource: str) -> str:
        """The run's own directory at *resource*, made at the first call. Raises ProbeFailed."""
        shell = self.shell(resource)
        with self._deadline.bounding(math.inf, f"making a scratch directory at {resource}", resource):
            return self._site(resource).scratch(shell)

    def expected_seconds(self, metric: str) -> float | None:
        """The forecast's upper bound for *metric*, as known when the run began."""
        return self._expected_seconds.get(metric)

    def check_credentials(self, resource: str) -> None:
        """Raise ProbeFailed unless *resource* lets us in, and will while the run is expected to take.

        What can be checked without the resource comes first: it says more than a refused login.
        """
        site = self._site(resource)
        needed_seconds = self._expected_seconds.get("total.seconds", 0.0)
        credentials = (*site.shell.credentials(), *self._transfer(resource, resource).credentials())
        try:
            for credential in credentials:
                credential.check(needed_seconds=needed_seconds)
        except CredentialUnfit as error:  # it does not know for whom it was wanted
            raise CredentialUnfit(error.message, resource=resource, stderr_tail=error.stderr_tail) from None
        self.shell(resource).check(
            ["true"], timeout_seconds=_CREDENTIAL_SECONDS, doing="run a program after logging in"
        )

    def check_scratch(self, resource: str, needed_bytes: int) -> None:
        """Raise ProbeFailed unless the scratch space can be written and has *needed_bytes* free."""
        scratch.check_space(self.shell(resource), self._site(resource).resource.scratch, needed_bytes)

    def check_tools(self, resource: str, tools: Sequence[str]) -> None:
        """Raise ProbeFailed naming the programs of *tools* that are not on the PATH of *resource*."""
        scratch.check_tools(self.shell(resource), tools)

    def clean_up(self) -> None:
        """Cancel jobs, remove scratch directories, close connections; once, at all resources together.

        Raises:
            CleanupFailed: names every resource at which something was left, and why.
        """
        if self._cleaned_up:
            return
        self._cleaned_up = True
        failed = [(name, why) for name, why in in_parallel(self._clean_up_at, self._connected) if why]
        if failed:
            whys = "; ".join(f"{name}: {why.message}" for name, why in failed)
            name, first = failed[0]
            raise CleanupFailed(
                f"cannot clean up at {whys}",
                resource=name,
                exit_status=first.exit_status,
                stderr_tail=first.stderr_tail,
            )

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the run's log."""
        self._write_log(text, level)

    def _site(self, resource: str) -> _Site:
        if resource not in self._sites:
            raise InvalidParameters(f"there is no resource {resource!r} in this run")
        return self._sites[resource]

    def _transfer(self, source: str, target: str) -> FileTransfer:
        sites = (self._site(source), self._site(target))
        return reach.transfer_between(*(End(site.resource, site.shell) for site in sites))

    def _connect_all(self) -> None:
        with_all = ThreadPoolExecutor(max_workers=len(self._sites), thread_name_prefix="connect")
        self._connected = {name: with_all.submit(site.connect) for name, site in self._sites.items()}
        with_all.shutdown(wait=False)

    def _clean_up_at(self, resource: str) -> tuple[str, ProbeFailed | None]:
        try:
            if self._connected[resource].exception() is None:
                self._sites[resource].clean_up()
        except ProbeFailed as error:
            return resource, error
        finally:
            self._sites[resource].shell.close()
        return resource, None


def _not_serving(resource: str, program: str, running: Running, within_seconds: float) -> ProbeFailed:
    """Why a program that was to serve has said nothing."""
    try:
        done = running.poll()
    except ProcessError as error:
        return ConnectionLost(f"{program} at {resource}: {error}", resource=resource)
    if done is None:
        return CommandFailed(
            f"{program} at {resource} was not ready after {within_seconds:g} s", resource=resource
        )
    said = decisive_line(done.stderr) or f"exit status {done.returncode}"
    return CommandFailed(
        f"{program} at {resource} ended before it was ready: {said}",
        resource=resource,
        exit_status=done.returncode,
        stderr_tail=tail(done.stderr),
    )


class GridJob:
    """A job whose waits end with the run."""

    def __init__(self, job: BatchJob, resource: str, deadline: Deadline) -> None:
        self._job = job
        self._resource = resource
        self._deadline = deadline

    def wait_started(self) -> float:
        """Seconds in the queue. Raises ProbeFailed."""
        doing = f"waiting for the job at {self._resource} to start"
        with self._deadline.bounding(math.inf, doing, self._resource) as limit_seconds:
            return self._job.wait_started(timeout_seconds=limit_seconds)

    def wait_ended(self) -> float:
        """Seconds of run time. Raises ProbeFailed."""
        doing = f"waiting for the job at {self._resource} to end"
        with self._deadline.bounding(math.inf, doing, self._resource) as limit_seconds:
            return self._job.wait_ended(timeout_seconds=limit_seconds)


class _Site:
    """One resource of a run: its shell, its scratch directory, its jobs."""

    def __init__(
        self, resource: Resource, assignment: Assignment, deadline: Deadline, log: Callable[[str], None]
    ) -> None:
        self.resource = resource
        self._series = assignment.series
        self._run = run_id(assignment.series, assignment.slot).hex[:_RUN_CHARACTERS]
        self._label = f"{assignment.series}@{rfc3339(assignment.slot)}"
        self._deadline = deadline
        self.shell = self.another_shell()
        self._log = log
        self._making = threading.Lock()
        self._directory: str | None = None
        self._touched = False
        self._batch: BatchSystem | None = None
        self._jobs: list[BatchJob] = []

    def another_shell(self) -> BoundedShell:
        """A shell of its own connection, not connected yet; who asks for it closes it."""
        return BoundedShell(reach.shell_of(self.resource, self._label), self._deadline)

    def connect(self) -> BoundedShell:
        self.shell.connect(timeout_seconds=math.inf)
        self._log(f"connected to {self.resource.name}")
        return self.shell

    def scratch(self, shell: BoundedShell) -> str:
        with self._making:
            if self._directory is None:
                self._touched = True  # a directory that was half made must be removed too
                self._directory = scratch.make(shell, self.resource.scratch, self._series, self._run)
            return self._directory

    def submit(self, argv: Sequence[str], directory: str, cpus: int, wall_seconds: float) -> BatchJob:
        with self._making:
            if self._batch is None:
                self._batch = reach.batch_of(self.resource, self.shell)
        job = self._batch.submit(argv, directory=directory, cpus=cpus, wall_seconds=wall_seconds)
        self._jobs.append(job)
        return job

    def clean_up(self) -> None:
        """Leave nothing, anew connected if need be. Raises ProbeFailed."""
        if not self._touched:
            return
        try:
            self._clean_up()
        except ConnectionLost:  # perhaps by what failed the run: then a new one may do
            self._clean_up()

    def _clean_up(self) -> None:
        self.shell.connect(timeout_seconds=math.inf)
        with contextlib.ExitStack() as last:  # also when a job cannot be cancelled
            last.callback(scratch.remove, self.shell, self.resource.scratch, self._series, self._run)
            for job in self._jobs:
                last.callback(job.cancel)


def _refuse_unfit(assignment: Assignment) -> None:
    """Raise InvalidParameters for a name or a directory that must not become part of a path."""
    for name in (assignment.series, *assignment.resources):
        if not _PATH_NAME.fullmatch(name):
            raise InvalidParameters(f"the name {name!r} may have letters, digits and ._- only")
    for resource in assignment.resources.values():
        if not resource.scratch.startswith("/"):
            raise InvalidParameters(f"resource {resource.name}: scratch {resource.scratch!r} is not absolute")
