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
    """The result of a program that has ended. The middle of a huge *stdout* or *stderr* is cut."""

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

    Attributes:
        streams: maximum number of parallel streams.
        block_bytes: size of one write; 0 stands for the default of the tool.
        server_checksum: whether the servers of both ends compare checksums; a difference is an error.
    """

    streams: int = 1
    block_bytes: int = 0
    server_checksum: bool = False


@dataclass(frozen=True)
class Capabilities:
    """The features and required tools of the transfer between two resources.

    Probes test these properties instead of the kind of the transfer.
    """

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
        """Run *argv* and return its stdout.

        Raises:
            ProbeFailed: the exit status is not 0; the message begins with "cannot *doing*".
            OutOfTime: the run reached its time limit.
        """
        ...


class BatchJob(Protocol):
    """A batch job. Every wait ends at the run's time limit; the cleanup cancels a job that has not ended."""

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
        """Run *argv* at *resource* while in this context; yield the first line of its output.

        The program must end when its standard input is closed. Raises ProbeFailed if the program prints no
        line *within_seconds*.
        """
        ...

    def capabilities(self, source: str, target: str) -> Capabilities:
        """Return the features of copies from *source* to *target*.

        Raises:
            ProbeFailed: no copy is possible.
        """
        ...

    def copy(self, source: Location, target: Location, options: CopyOptions = CopyOptions()) -> Transferred:
        """Copy one file. The file appears under the target's name only when the copy is complete."""
        ...

    def submit(self, resource: str, argv: Sequence[str], *, cpus: int, wall_seconds: float) -> BatchJob:
        """Submit *argv* to the batch system of *resource*; the job runs in the run's scratch directory."""
        ...

    def scratch(self, resource: str) -> str:
        """Return the run's own directory at *resource*; the first call creates it."""
        ...

    def expected_seconds(self, metric: str) -> float | None:
        """Return the forecast upper bound, in seconds, of *metric*, such as ``stage.compute.seconds``.

        The forecast was issued before the run started. Returns None if there was no forecast.
        """
        ...

    def remaining_seconds(self) -> float:
        """Return the seconds until the run's time limit."""
        ...

    def recall(self) -> str | None:
        """Return the text that an earlier run of the series remembered last; None if there is none."""
        ...

    def remember(self, text: str) -> bool:
        """Keep *text*, at most a megabyte, for later runs of the series; it is kept at once and atomically.

        Return False where the reporter keeps nothing, as in a single run that an operator starts.
        """
        ...

    def check_credentials(self, resource: str) -> None:
        """Raise ProbeFailed unless *resource* accepts a login and the credentials stay valid for the run.

        The run is expected to last as long as the forecast upper bound of ``total.seconds``.
        """
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
