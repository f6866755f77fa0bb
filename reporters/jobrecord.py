"""The state of a job: the stamps that the job writes, and the record of its batch system."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reporters.jobfiles import JobStamps

WAITING, RUNNING, OVER = "waiting", "running", "over"
WALL_LIMIT = "exceeded its wall limit"
CANCELLED = "was cancelled"
NO_MEMORY = "ran out of memory"

_RECORD_SECONDS = 1.0  # batch systems keep whole seconds


@dataclass(frozen=True)
class JobRequest:
    """The parameters of a job's submission. Paths are absolute at the site."""

    name: str  # at most 15 characters, the limit of old PBS versions
    directory: str
    script: str
    output: str  # for messages of the batch system itself
    cpus: int
    wall_seconds: float

    @property
    def whole_wall_seconds(self) -> int:
        """The wall limit for the batch system, rounded up; the job's script applies the exact limit."""
        return math.ceil(self.wall_seconds)


@dataclass(frozen=True)
class JobRecord:
    """A batch system's record of a job. Times are in seconds since the epoch by the batch system's clock.

    Attributes:
        phase: WAITING, RUNNING or OVER.
        state: the state in the batch system's words.
        reason: the reason for the state in the batch system's words.
        status: the job's exit status; 128 + n for signal n.
        how: how the batch system ended the job (WALL_LIMIT, CANCELLED ...); empty if the job ended by itself.
    """

    phase: str
    state: str
    reason: str = ""
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    status: int | None = None
    how: str = ""

    def __str__(self) -> str:
        return f"{self.state} ({self.reason})" if self.reason else self.state

    @property
    def ended_how(self) -> str:
        """Describe how the batch system ended the job, such as "was cancelled: CANCELLED by 0"."""
        return f"{self.how or 'was ended by the batch system'}: {self}"


UNKNOWN_JOB = JobRecord(OVER, "the batch system does not know it any more", how="is gone")


@dataclass(frozen=True)
class JobStatus:
    """A job's stamps, the batch system's record of the job, and the stderr of the status command."""

    stamps: JobStamps
    record: JobRecord | None
    complaint: str = ""

    @property
    def situation(self) -> str:
        if self.record is None:
            return f"the batch system does not answer: {self.complaint or 'without an error message'}"
        return self.record.state if self.record is UNKNOWN_JOB else f"it is {self.record}"


def queue_seconds(submitted: float, stamps: JobStamps, record: JobRecord | None) -> float:
    """Return the seconds from the submission to the start of a job.

    The record has whole seconds. If the job's own stamp differs from the record by less than a second, the
    result uses the stamp, otherwise the record. The reason is that *submitted* is by the clock of the host
    where the submit command ran, and the job's host may have a different clock.
    """
    own = None if stamps.started is None else max(0.0, stamps.started - submitted)
    if record is None or record.submitted is None or record.started is None:
        return own or 0.0
    recorded = max(0.0, record.started - record.submitted)
    return recorded if own is None or abs(own - recorded) > _RECORD_SECONDS else own


def run_seconds(stamps: JobStamps) -> float:
    """Return the seconds from a job's first stamp to its last."""
    return max(0.0, (stamps.ended or 0.0) - (stamps.started or stamps.ended or 0.0))
