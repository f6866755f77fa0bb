"""The operations that a probe may perform on sites. ``reporters.grid`` implements them.

A probe never knows which shell, transfer or batch system reaches a site. A failed operation raises
``ProbeFailed``, whose message names the operation, the resource and the error. Once the run has reached its
time limit, every operation raises ``OutOfTime``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Completed:
    """The result of a program that ended. Huge *stdout* and *stderr* are truncated in the middle."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class Location:
    """A file at a resource; *path* is absolute."""

    resource: str
    path: str


@dataclass(frozen=True)
class CopyOptions:
    """Options of a copy. A transfer ignores options that it lacks: see ``Grid.capabilities``.

    *streams* is the maximum number of parallel streams, *block_bytes* the size of one write (0: the tool's
    default). With *server_checksum* the servers of both ends compare checksums, and a difference is an error.
    """

    streams: int = 1
    block_bytes: int = 0
    server_checksum: bool = False


@dataclass(frozen=True)
class Capabilities:
    """The features and needs of the transfer between two resources. Probes test these, not its kind."""

    third_party: bool  # data go directly from the source to the target, not through the reporter
    parallel_streams: bool
    server_checksum: bool
    source_tools: Sequence[str] = ()  # programs needed on the PATH of the source
    target_tools: Sequence[str] = ()


@dataclass(frozen=True)
class Transferred:
    """A successful copy: bytes, seconds, number of streams, and number of retries by the transfer's tool."""

    bytes: int
    seconds: float
    streams: int = 1
    retries: int = 0


class Shell(Protocol):
    """Runs programs at one resource."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_seconds: float,
        input: str | None = None,
    ) -> Completed:
        """Run *argv* and return its result, whatever the exit status.

        Raises:
            ProbeFailed: the resource is unreachable, or the program ran longer than *timeout_seconds*.
            OutOfTime: the run reached its time limit.
        """
        ...

    def check(
        self,
        argv: Sequence[str],
        *,
        timeout_seconds: float,
        doing: str,
        input: str | None = None,
    ) -> str:
        """Run *argv*; return its stdout. A non-zero exit status raises ProbeFailed("cannot {doing} ...")."""
        ...


class BatchJob(Protocol):
    """A batch job. Waits end at the run's time limit; cleanup cancels a job that has not ended."""

    def wait_started(self) -> float:
        """Block until the job starts; return the seconds that it was queued."""
        ...

    def wait_ended(self) -> float:
        """Block until the job ends; return the seconds that it ran. Raises ProbeFailed if the job failed."""
        ...


class Grid(Protocol):
    """The resources of one run, by name."""

    def shell(self, resource: str) -> Shell: ...

    def login(self, resource: str) -> float:
        """Open a new connection, run ``true`` and close it; return the seconds until ``true`` ended.

        The connection that other operations share is not used.
        """
        ...

    def address(self, resource: str) -> str:
        """Return the host name or IP address by which other sites reach *resource*.

        Raises:
            ProbeFailed: no address is configured.
        """
        ...

    def serving(
        self, resource: str, argv: Sequence[str], *, within_seconds: float
    ) -> AbstractContextManager[str]:
        """Run *argv* at *resource* for as long as the context is open; its value is the first line of output.

        The program must end when its standard input is closed. Raises ProbeFailed if it prints no line
        *within_seconds*.
        """
        ...

    def capabilities(self, source: str, target: str) -> Capabilities:
        """Return what copies from *source* to *target* support. Raises ProbeFailed if none is possible."""
        ...

    def copy(self, source: Location, target: Location, options: CopyOptions = CopyOptions()) -> Transferred:
        """Copy one file. The target appears under its name only when it is complete."""
        ...

    def submit(self, resource: str, argv: Sequence[str], *, cpus: int, wall_seconds: float) -> BatchJob:
        """Submit *argv* to the batch system of *resource*; the job runs in the run's scratch directory."""
        ...

    def scratch(self, resource: str) -> str:
        """Return the run's own directory at *resource*; the first call creates it."""
        ...

    def expected_seconds(self, metric: str) -> float | None:
        """Return the upper bound of the forecast of *metric*, such as ``stage.compute.seconds``.

        The forecast is the one known when the run started; None if there was none.
        """
        ...

    def check_credentials(self, resource: str) -> None:
        """Raise ProbeFailed unless *resource* accepts a login and credentials outlast the expected run."""
        ...

    def check_scratch(self, resource: str, needed_bytes: int) -> None:
        """Raise ProbeFailed unless scratch space at *resource* is writable and has *needed_bytes* free."""
        ...

    def check_tools(self, resource: str, tools: Sequence[str]) -> None:
        """Raise ProbeFailed, naming the missing programs, unless *resource* has all *tools* on its PATH."""
        ...

    def clean_up(self) -> None:
        """Cancel jobs that have not ended and remove all scratch directories of this run."""
        ...

    def log(self, text: str, level: str = "info") -> None:
        """Append a line to the run's log."""
        ...
