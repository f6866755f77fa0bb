"""What a probe may do to sites. ``reporters.grid`` does it; a probe never knows how a site is reached.

What goes wrong is a ``ProbeFailed`` that says what was tried, on what, and what came back; ``OutOfTime``
where the run as a whole is out of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Completed:
    """A program that ended. *stdout* and *stderr* may be cut in the middle when they are huge."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class Location:
    """A file at a resource; *path* is absolute there."""

    resource: str
    path: str


@dataclass(frozen=True)
class CopyOptions:
    """How a copy is to be made. What a tool cannot do it leaves; ``Grid.capabilities`` says what it can.

    *streams* is how many parallel streams it may use, *block_bytes* the size of one write (0: as the tool
    likes). With *server_checksum* the servers of both ends compare checksums; if they differ, the copy fails.
    """

    streams: int = 1
    block_bytes: int = 0
    server_checksum: bool = False


@dataclass(frozen=True)
class Capabilities:
    """What copies between two resources can do, and need; probes ask for these, not for kinds of transfer."""

    third_party: bool  # the bytes go from the source to the target, not through the reporter
    parallel_streams: bool
    server_checksum: bool
    source_tools: Sequence[str] = ()  # programs that must be on the PATH of the source
    target_tools: Sequence[str] = ()


@dataclass(frozen=True)
class Transferred:
    """A copy that arrived: bytes, seconds, streams used, and how often its tool had to try again."""

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
        """Run *argv* and return what came of it, whatever its exit status.

        Raises:
            ProbeFailed: the resource cannot be reached, or the program ran longer than the limit.
            OutOfTime: the run as a whole is out of time.
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
        """Like ``run``, but a non-zero exit status raises ProbeFailed("cannot {doing}"). Returns stdout."""
        ...


class BatchJob(Protocol):
    """A batch job. Waiting is bounded by the run's limit; one that is left behind is cancelled in cleanup."""

    def wait_started(self) -> float:
        """Block until the job's first breath; return the seconds it was queued."""
        ...

    def wait_ended(self) -> float:
        """Block until the job ended; return the seconds it ran. Raises ProbeFailed if it ended badly."""
        ...


class Grid(Protocol):
    """The resources of one run."""

    def shell(self, resource: str) -> Shell: ...

    def login(self, resource: str) -> float:
        """Log in anew, beside the connection that is used otherwise, run ``true`` and log out.

        The seconds until the end of ``true``. Raises ProbeFailed, OutOfTime.
        """
        ...

    def address(self, resource: str) -> str:
        """The host name or IP address under which other sites reach *resource*. Raises ProbeFailed."""
        ...

    def serving(
        self, resource: str, argv: Sequence[str], *, within_seconds: float
    ) -> AbstractContextManager[str]:
        """While in this context *argv* runs at *resource*; its value is the first line that it prints.

        The program must end when its input ends. Raises ProbeFailed if there is no line *within_seconds*.
        """
        ...

    def capabilities(self, source: str, target: str) -> Capabilities:
        """What copies from *source* to *target* can do. Raises ProbeFailed where there is no way."""
        ...

    def copy(self, source: Location, target: Location, options: CopyOptions = CopyOptions()) -> Transferred:
        """Copy one file from resource to resource. It appears under its name only when it is whole."""
        ...

    def submit(self, resource: str, argv: Sequence[str], *, cpus: int, wall_seconds: float) -> BatchJob:
        """Hand *argv* to the batch system of *resource*; it runs in the scratch directory there."""
        ...

    def scratch(self, resource: str) -> str:
        """The run's own fresh directory at *resource*, made at the first call."""
        ...

    def expected_seconds(self, metric: str) -> float | None:
        """How long *metric* (such as ``stage.compute.seconds``) is expected to take at most, by the forecast
        that was known when the run began; None where there was none."""
        ...

    def check_credentials(self, resource: str) -> None:
        """Raise ProbeFailed unless *resource* lets us in, and will while the run is expected to take."""
        ...

    def check_scratch(self, resource: str, needed_bytes: int) -> None:
        """Raise ProbeFailed unless the scratch at *resource* is writable and has *needed_bytes* free."""
        ...

    def check_tools(self, resource: str, tools: Sequence[str]) -> None:
        """Raise ProbeFailed naming the programs of *tools* that are not on the PATH of *resource*."""
        ...

    def clean_up(self) -> None:
        """Cancel jobs that still live and remove every scratch directory of this run."""
        ...

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the run's log."""
        ...
