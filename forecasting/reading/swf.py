"""Standard Workload Format: the log of a batch system, with one job of 18 fields on each line (Feitelson,
Tsafrir, Krakov: "Experience with using the Parallel Workloads Archive", JPDC 74, 2014; the format is at
www.cs.huji.ac.il/labs/parallel/workload/swf.html).

A negative number means unknown. Lines of status 2 to 4 are parts of jobs; the whole job has another line. A
job that was cancelled (status 5) without running left the queue when its wait ended.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forecasting.base import ForecastingError
from forecasting.queues.queue_state import QueuedJob
from forecasting.reading.tables import UnreadableFile, lines, shown

FIELDS = 18
UNKNOWN_STATUS, FAILED, COMPLETED, CANCELLED = -1, 0, 1, 5
PART_STATUSES = (2, 3, 4)
UNKNOWN_QUEUE = "unknown"
_STATUSES = (UNKNOWN_STATUS, FAILED, COMPLETED, *PART_STATUSES, CANCELLED)
_LARGEST = 3.2e9  # as seconds, a century
_START = re.compile(r";\s*UnixStartTime:\s*(\S+)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class InvalidSwfField(ForecastingError, ValueError):
    """The *field* of a line violates the format."""

    def __init__(self, field: str, expected: str, got: str) -> None:
        super().__init__(f"{field}: expected {expected}, got {shown(got)}")
        self.field, self.expected, self.got = field, expected, got


@dataclass(slots=True, frozen=True)
class SwfJob:
    """The job of one line; None is an unknown number.

    *user*, *group*, *program*, *queue* and *partition* are the text of the file, a negative number if
    unknown.
    """

    number: int
    submitted_seconds: float | None  # since the log began
    wait_seconds: float | None
    run_seconds: float | None
    processors: float | None
    requested_processors: float | None
    requested_seconds: float | None
    status: int
    user: str
    group: str
    program: str
    queue: str
    partition: str

    @property
    def is_part(self) -> bool:
        return self.status in PART_STATUSES

    @property
    def never_ran(self) -> bool:
        """Whether the job was cancelled before it ran."""
        return self.status == CANCELLED and not self.run_seconds


@dataclass(slots=True, frozen=True)
class LoggedJob:
    """A job that started, or was *withdrawn* from the queue, *wait_seconds* after its submission."""

    job: QueuedJob
    wait_seconds: float
    run_seconds: float
    withdrawn: bool

    @property
    def left_queue_seconds(self) -> float:
        return self.job.submitted_seconds + self.wait_seconds


@dataclass(slots=True)
class JobLog:
    """The jobs of a file, numbered from 0 in the order of the file.

    *left_out* counts the lines of parts of jobs, and of jobs whose wait is unknown.
    """

    jobs: list[LoggedJob]
    left_out: int


def parse(words: Sequence[str]) -> SwfJob:
    """Return the job that the *words* of a line describe.

    Raises:
        InvalidSwfField: *words* are not 18 fields, a number is invalid, or the status does not exist.
    """
    if len(words) != FIELDS:
        raise InvalidSwfField("fields", str(FIELDS), f"{len(words)}: {' '.join(words)}")
    status = _number("status", words[10])
    if status not in _STATUSES:
        raise InvalidSwfField("status", "-1 to 5", words[10])
    return SwfJob(
        number=int(_number("job number", words[0])),
        submitted_seconds=_known("submit time", words[1]),
        wait_seconds=_known("wait time", words[2]),
        run_seconds=_known("run time", words[3]),
        processors=_known("processors", words[4]),
        requested_processors=_known("requested processors", words[7]),
        requested_seconds=_known("requested time", words[8]),
        status=int(status),
        user=words[11],
        group=words[12],
        program=words[13],
        queue=words[14],
        partition=words[15],
    )


def jobs(file: str) -> Iterator[tuple[SwfJob, float]]:
    """Yield the jobs of *file* in its order, each with the start of the log in seconds since 1970.

    The start is 0 if no header ``UnixStartTime`` precedes the job. *file* may be compressed by gzip; ``-`` is
    standard input.

    Raises:
        UnreadableFile: a field is invalid; the message names file and line.
    """
    start_seconds = 0.0
    for number, line in enumerate(lines(file, encoding="latin-1"), start=1):  # comments may name people
        try:
            if header := _START.match(line):
                start_seconds = _number("UnixStartTime", header[1])
            words = line.split()
            if words and not words[0].startswith(";"):
                yield parse(words), start_seconds
        except InvalidSwfField as error:
            raise UnreadableFile(f"{file}, line {number}, {error}") from None


def read(file: str) -> JobLog:
    """Return the jobs of *file*, which may be compressed by gzip; ``-`` is standard input.

    Raises:
        UnreadableFile: a field is invalid (the message names file and line), or *file* has no job.
    """
    log = JobLog([], 0)
    for job, _ in jobs(file):
        logged = _logged(job, len(log.jobs))
        if logged is None:
            log.left_out += 1
        else:
            log.jobs.append(logged)
    if not log.jobs:
        raise UnreadableFile(f"{file}: expected jobs with a known wait, in SWF; got none")
    return log


def _logged(job: SwfJob, number: int) -> LoggedJob | None:
    """Return *job* with its *number* in the file; None if a replay cannot use the job."""
    if job.is_part or job.wait_seconds is None or job.submitted_seconds is None:
        return None
    queued = QueuedJob(
        number,
        job.submitted_seconds,
        known_name(job.queue) or UNKNOWN_QUEUE,
        known_name(job.user),
        job.requested_processors or job.processors or None,
        job.requested_seconds or None,
    )
    return LoggedJob(queued, job.wait_seconds, job.run_seconds or 0.0, withdrawn=job.never_ran)


def _number(field: str, word: str) -> float:
    number = float(word) if _NUMBER.fullmatch(word) else math.nan
    if not abs(number) <= _LARGEST:
        raise InvalidSwfField(field, f"a number of at most {_LARGEST:g}", word)
    return number


def _known(field: str, word: str) -> float | None:
    number = _number(field, word)
    return number if number >= 0.0 else None


def known_name(word: str) -> str:
    """Return *word*, the text of a field; empty if the field is unknown."""
    return "" if word.startswith("-") else word
