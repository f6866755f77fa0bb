"""What a probe may do to sites (``probes.grid.Grid``), over the resources of one assignment.

Thread-safe: probes use several resources at once. All connections of a run are opened together, at the first
use of any; one that fails is an error only for who uses that resource. Every wait ends with the run's limit.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from probes.base import InvalidParameters, ProbeFailed, in_parallel
from probes.grid import Capabilities, CopyOptions, Location, Transferred
from reporters import resolve, scratch
from reporters.base import CleanupFailed, CredentialUnfit, End, FileTransfer
from reporters.config import Assignment
from reporters.deadline import BoundedShell, Deadline
from reporters.resource_session import GridJob, ResourceSession, check_answers, serving
from reporters.usage import ResourceUsage, UsageMeter

_PLAIN = CopyOptions()
_PATH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)


class RunGrid:
    """The grid of one run. *log* takes a text and a level."""

    def __init__(self, assignment: Assignment, deadline: Deadline, log: Callable[[str, str], None]) -> None:
        _refuse_unfit(assignment)
        self._sites = {
            name: ResourceSession(resource, assignment, deadline, self.log)
            for name, resource in assignment.resources.items()
        }
        self._deadline = deadline
        self._expected_seconds = assignment.expected_seconds
        self._write_log = log
        self._opening = threading.Lock()
        self._connected: dict[str, Future[BoundedShell]] = {}
        self._cleaned_up = False
        self._meter = UsageMeter()

    def shell(self, resource: str) -> BoundedShell:
        """The shell of *resource*, connected. Raises ProbeFailed."""
        self._site(resource)
        with self._opening:
            if not self._connected:
                self._connect_all()
        return self._connected[resource].result()

    def login(self, resource: str) -> float:
        """Log in anew, run ``true`` and log out; the seconds of the first two. Raises ProbeFailed."""
        return self._site(resource).login()

    def address(self, resource: str) -> str:
        """The host name or IP address under which other sites reach *resource*. Raises ResourceUnfit."""
        return self._site(resource).address()

    @contextlib.contextmanager
    def serving(self, resource: str, argv: Sequence[str], *, within_seconds: float) -> Iterator[str]:
        """While in this context *argv* runs at *resource*; its value is its first line."""
        with serving(self.shell(resource), argv, self._deadline, within_seconds) as first_line:
            yield first_line

    def capabilities(self, source: str, target: str) -> Capabilities:
        """What copies from *source* to *target* can do. Raises ProbeFailed."""
        return self._transfer(source, target).capabilities

    def copy(self, source: Location, target: Location, options: CopyOptions = _PLAIN) -> Transferred:
        """Copy one file directly. Raises ProbeFailed."""
        what = f"{source.resource}:{source.path} to {target.resource}:{target.path}"
        transfer = self._transfer(source.resource, target.resource)
        with self._deadline.bounding(math.inf, f"copying {what}", target.resource) as limit_seconds:
            copy = transfer.copy(source.path, target.path, options=options, timeout_seconds=limit_seconds)
        self._meter.copied(source.resource, target.resource, copy.bytes)
        self.log(f"copied {what}: {copy.bytes} bytes in {copy.seconds:.3f} s, {copy.streams} streams")
        return copy

    def submit(self, resource: str, argv: Sequence[str], *, cpus: int, wall_seconds: float) -> GridJob:
        """Hand in a job that runs in the scratch directory of *resource*. Raises ProbeFailed."""
        directory = self.scratch(resource)
        job = self._site(resource).submit(argv, directory, cpus, wall_seconds)
        self.log(f"submitted a job at {resource}: {cpus} cpus, at most {wall_seconds:g} s")
        return GridJob(job, resource, self._deadline, self._meter.job(resource, cpus))

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
        check_answers(self.shell(resource))

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

    def usage(self) -> dict[str, ResourceUsage]:
        """What was used so far, by resource."""
        return self._meter.read()

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the run's log."""
        self._write_log(text, level)

    def _site(self, resource: str) -> ResourceSession:
        if resource not in self._sites:
            raise InvalidParameters(f"there is no resource {resource!r} in this run")
        return self._sites[resource]

    def _transfer(self, source: str, target: str) -> FileTransfer:
        sites = (self._site(source), self._site(target))
        return resolve.transfer_between(*(End(site.resource, site.shell) for site in sites))

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


def _refuse_unfit(assignment: Assignment) -> None:
    """Raise InvalidParameters for a name or a directory that must not become part of a path."""
    for name in (assignment.series, *assignment.resources):
        if not _PATH_NAME.fullmatch(name):
            raise InvalidParameters(f"the name {name!r} may have letters, digits and ._- only")
    for resource in assignment.resources.values():
        resolve.check(resource)
