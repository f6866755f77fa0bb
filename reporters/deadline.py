"""Apply the run's time limit to everything that a probe waits for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from probes.base import OutOfTime
from probes.grid import Completed
from reporters.base import CannotConnect, Credential, JobStuck, ResourceShell, TookTooLong
from reporters.process import Running


class Deadline:
    """A time limit of *seconds* from now by *clock*; messages call the limited work *subject*: "run"."""

    def __init__(self, seconds: float, clock: Callable[[], float], subject: str = "run") -> None:
        self._clock = clock
        self.restart(seconds, subject)

    def restart(self, seconds: float, subject: str) -> None:
        self._seconds = seconds
        self._subject = subject
        self._until = self._clock() + seconds

    @property
    def remaining_seconds(self) -> float:
        return self._until - self._clock()

    def check(self, doing: str, resource: str | None = None) -> None:
        """Raise OutOfTime if the limit is reached; the message ends with "was reached while *doing*"."""
        if self.remaining_seconds <= 0:
            raise self._out_of_time(doing, resource, "")

    @contextlib.contextmanager
    def bounding(self, limit_seconds: float, doing: str, resource: str) -> Iterator[float]:
        """Yield the smaller of *limit_seconds* and the remaining seconds; *doing* is as in ``check``.

        Raises:
            OutOfTime: the body timed out because the run reached its limit.
        """
        self.check(doing, resource)
        try:
            yield min(limit_seconds, self.remaining_seconds)
        except (TookTooLong, CannotConnect, OutOfTime) as error:
            if self.remaining_seconds > 0:
                raise
            action = f"{doing}; {error.situation}" if isinstance(error, JobStuck) else doing
            raise self._out_of_time(action, resource, error.stderr_tail) from error

    def _out_of_time(self, doing: str, resource: str | None, stderr_tail: str) -> OutOfTime:
        message = f"the {self._subject}'s limit of {self._seconds:g} s was reached while {doing}"
        return OutOfTime(message, resource=resource, stderr_tail=stderr_tail)


class BoundedShell(ResourceShell):
    """A shell whose ``connect`` and ``run`` end at the run's deadline at the latest."""

    def __init__(self, shell: ResourceShell, deadline: Deadline) -> None:
        super().__init__(shell.resource, shell.label)
        self._shell = shell
        self._deadline = deadline
        self.interactive = shell.interactive
        self.containment = shell.containment

    def credentials(self) -> Sequence[Credential]:
        return self._shell.credentials()

    def connect(self, *, timeout_seconds: float) -> None:
        with self._deadline.bounding(
            timeout_seconds, f"connecting to {self.resource}", self.resource
        ) as limit_seconds:
            self._shell.connect(timeout_seconds=limit_seconds)

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        with self._deadline.bounding(
            timeout_seconds, f"running {argv[0]} at {self.resource}", self.resource
        ) as limit_seconds:
            return self._shell.run(argv, timeout_seconds=limit_seconds, input=input)

    def start(self, argv: Sequence[str]) -> Running:
        self._deadline.check(f"starting {argv[0]} at {self.resource}", self.resource)
        return self._shell.start(argv)

    def close(self) -> None:
        self._shell.close()
