"""Replay the log of a batch system: bound each wait from what was known at its submission, and score it.

When a job is submitted, the waits of the started jobs and the ages of the waiting jobs are known. Events of
earlier jobs in the second of the submission count as known. If a job starts in the second of its own
submission, other jobs that are submitted in this second do not know its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from statistics import median

from forecasting.evaluation.metrics import coverage, pinball_loss
from forecasting.learning.windows import SortedWindow
from forecasting.queues.binomial import CONFIDENCE, QUANTILE
from forecasting.queues.bounds import QueueBounds
from forecasting.reading.swf import LoggedJob

PLAIN_WINDOW = 1000


class JobEvent(IntEnum):
    """The kinds of events, in their order within a second.

    LEFT_QUEUE_AT_ONCE happens in the second of the job's submission, ENDED_AT_ONCE in the second of the job's
    start.
    """

    ENDED = 0
    LEFT_QUEUE = 1
    SUBMITTED = 2
    LEFT_QUEUE_AT_ONCE = 3
    ENDED_AT_ONCE = 4


@dataclass(slots=True)
class BoundedWaits:
    """The waits of one queue with their bounds.

    Attributes:
        jobs: number of all jobs that started in the queue, with or without a bound.
        waits_seconds: the wait of each job with a bound.
        bounds_seconds: the issued bound of each of these jobs.
        plain_seconds: the baseline's bound of each of these jobs.
    """

    jobs: int = 0
    waits_seconds: list[float] = field(default_factory=list)
    bounds_seconds: list[float] = field(default_factory=list)
    plain_seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class BoundScores:
    """The scores of bounds; None if there was no bound."""

    coverage: float | None
    pinball_seconds: float | None
    median_seconds: float | None


@dataclass(frozen=True)
class QueueScore:
    """The scores of one queue.

    Attributes:
        jobs: number of jobs that started in the queue.
        bounded: number of these jobs that had a bound.
        bound: scores of the issued bounds.
        plain: scores of the baseline.
    """

    queue: str
    jobs: int
    bounded: int
    bound: BoundScores
    plain: BoundScores


def score_queues(
    jobs: Sequence[LoggedJob],
    quantile: float = QUANTILE,
    confidence: float = CONFIDENCE,
    plain_window: int = PLAIN_WINDOW,
) -> list[QueueScore]:
    """Return the score of each queue, the queue with most jobs first.

    A bound should hold for the share *quantile* of jobs with *confidence*. The baseline is a rolling
    quantile: the interpolated quantile of the last *plain_window* waits of the queue.
    """
    by_queue = _replay(jobs, quantile, confidence, plain_window)
    names = sorted(by_queue, key=lambda name: (-by_queue[name].jobs, name))
    return [_queue_score(name, by_queue[name], quantile) for name in names]


def _replay(
    jobs: Sequence[LoggedJob], quantile: float, confidence: float, plain_window: int
) -> dict[str, BoundedWaits]:
    machine, plain = QueueBounds(quantile, confidence), RollingQuantiles(quantile, plain_window)
    by_queue: dict[str, BoundedWaits] = {}
    issued: dict[int, tuple[float, float]] = {}
    for at_seconds, event, logged in _events(jobs):
        job, number = logged.job, logged.job.number
        if event is JobEvent.SUBMITTED:
            bound = machine.submit(job)
            if bound is not None:
                issued[number] = bound, plain.quantile_of(job.queue)
        elif event in (JobEvent.ENDED, JobEvent.ENDED_AT_ONCE):
            machine.end(number, at_seconds)
        elif logged.withdrawn:
            machine.withdraw(number)
            issued.pop(number, None)
        else:
            machine.start(number, at_seconds)
            plain.add(job.queue, logged.wait_seconds)
            waits = by_queue.setdefault(job.queue, BoundedWaits())
            waits.jobs += 1
            if number in issued:
                bound, plain_bound = issued.pop(number)
                waits.waits_seconds.append(logged.wait_seconds)
                waits.bounds_seconds.append(bound)
                waits.plain_seconds.append(plain_bound)
    return by_queue


def _events(jobs: Sequence[LoggedJob]) -> Iterator[tuple[float, JobEvent, LoggedJob]]:
    """Yield (time in seconds, event, job) in order of time; within a second by event, then by number."""
    events: list[tuple[float, int, int]] = []
    for logged in jobs:
        number, submitted, left = logged.job.number, logged.job.submitted_seconds, logged.left_queue_seconds
        events.append((submitted, JobEvent.SUBMITTED, number))
        left_queue = JobEvent.LEFT_QUEUE if left > submitted else JobEvent.LEFT_QUEUE_AT_ONCE
        events.append((left, left_queue, number))
        if not logged.withdrawn:
            ended = left + logged.run_seconds
            events.append((ended, JobEvent.ENDED if ended > left else JobEvent.ENDED_AT_ONCE, number))
    by_number = {logged.job.number: logged for logged in jobs}
    for at_seconds, event, number in sorted(events):
        yield at_seconds, JobEvent(event), by_number[number]


@dataclass(slots=True)
class RollingQuantiles:
    """The quantile of the last waits of each queue."""

    quantile: float
    window: int
    _queues: dict[str, SortedWindow] = field(default_factory=dict, init=False)

    def add(self, queue: str, wait_seconds: float) -> None:
        if queue not in self._queues:
            self._queues[queue] = SortedWindow(self.window)
        self._queues[queue].add(wait_seconds)

    def quantile_of(self, queue: str) -> float:
        """Return the quantile of the last waits of *queue*; at least one wait must be known."""
        ordered = self._queues[queue].ordered
        below, part = divmod(self.quantile * (len(ordered) - 1), 1.0)
        low, high = ordered[int(below)], ordered[min(int(below) + 1, len(ordered) - 1)]
        return low + part * (high - low)


def _queue_score(queue: str, waits: BoundedWaits, quantile: float) -> QueueScore:
    return QueueScore(
        queue,
        waits.jobs,
        len(waits.waits_seconds),
        _bound_scores(waits.waits_seconds, waits.bounds_seconds, quantile),
        _bound_scores(waits.waits_seconds, waits.plain_seconds, quantile),
    )


def _bound_scores(waits: list[float], bounds: list[float], quantile: float) -> BoundScores:
    return BoundScores(
        coverage(waits, [0.0] * len(waits), bounds),
        pinball_loss(waits, bounds, quantile),
        median(bounds) if bounds else None,
    )
