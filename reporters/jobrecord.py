"""What is known of a job in a queue: by itself, and by its batch system."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reporters.jobfiles import Breath

WAITING, RUNNING, OVER = "waiting", "running", "over"
WALL_LIMIT = "exceeded its wall limit"
CANCELLED = "was cancelled"
NO_MEMORY = "ran out of memory"

_RECORD_SECONDS = 1.0  # batch systems keep whole seconds


@dataclass(frozen=True)
class Request:
    """A job as a batch system is to be told of it. Paths are absolute at the site."""

    name: str  # at most 15 characters: older ones of PBS cut it there
    directory: str
    script: str
    output: str  # for what the batch system itself has to say
    cpus: int
    wall_seconds: float

    @property
    def whole_wall_seconds(self) -> int:
        """As long as asked for or longer; the job itself ends to the second."""
        return math.ceil(self.wall_seconds)


@dataclass(frozen=True)
class JobRecord:
    """What a batch system knows of a job; times in seconds since the epoch by its own clock.

    *phase* is WAITING, RUNNING or OVER; *state* and *reason* are in its own words. *status* is the job's, as
    a shell says it. *how* says how it ended where the job could not (WALL_LIMIT, CANCELLED ...).
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
        """How the batch system ended it, as in "was cancelled: CANCELLED by 0"."""
        return f"{self.how or 'was ended by the batch system'}: {self}"


UNKNOWN_JOB = JobRecord(OVER, "the batch system does not know it any more", how="is gone")


@dataclass(frozen=True)
class Seen:
    """What is known of a job: by itself, by the batch system, and what the latter's command complained of."""

    breath: Breath
    record: JobRecord | None
    complaint: str = ""

    @property
    def situation(self) -> str:
        if self.record is None:
            return f"the batch system does not answer: {self.complaint or 'it said nothing'}"
        return self.record.state if self.record is UNKNOWN_JOB else f"it is {self.record}"


def queue_seconds(submitted: float, breath: Breath, record: JobRecord | None) -> float:
    """From handing in to the start: by the batch system, which knows whole seconds; within these by the job.

    *submitted* is by the clock of the host where the job was handed in, which may not be where it ran.
    """
    own = None if breath.started is None else max(0.0, breath.started - submitted)
    if record is None or record.submitted is None or record.started is None:
        return own or 0.0
    said = max(0.0, record.started - record.submitted)
    return said if own is None or abs(own - said) > _RECORD_SECONDS else own


def run_seconds(breath: Breath) -> float:
    """From a job's first breath to its last."""
    return max(0.0, (breath.ended or 0.0) - (breath.started or breath.ended or 0.0))
