"""A log of a batch system replayed: what would have been said of each wait, from what was known then.

When a job is submitted, the waits of those that have started are known, and of those that wait it is known
for how long they have waited. What happens in the same second as a submission counts as known if it began
before it: of a job that starts in the second in which it was submitted, nothing is known to others of that
second.
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


class _What(IntEnum):
    """What happens, in the order in which it does within a second."""

    ENDED = 0
    LEFT_QUEUE = 1
    SUBMITTED = 2
    LEFT_QUEUE_AT_ONCE = 3
    ENDED_AT_ONCE = 4


@dataclass(slots=True)
class Said:
    """The waits of one queue that were bounded, and what was said of them. *jobs* are all that started."""

    jobs: int = 0
    waits_seconds: list[float] = field(default_factory=list)
    bounds_seconds: list[float] = field(default_factory=list)
    plain_seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Figures:
    """How good bounds were. None: there was none."""

    coverage: float | None
    pinball_seconds: float | None
    median_seconds: float | None


@dataclass(frozen=True)
class Score:
    """The *bounded* of the *jobs* of one *queue*; *plain* is the rolling quantile of the same."""

    queue: str
    jobs: int
    bounded: int
    bound: Figures
    plain: Figures


def scores(
    jobs: Sequence[LoggedJob],
    quantile: float = QUANTILE,
    confidence: float = CONFIDENCE,
    plain_window: int = PLAIN_WINDOW,
) -> list[Score]:
    """The score of each queue, that of most jobs first.

    A plain rolling quantile is given beside it: that of the last *plain_window* waits of the queue, between
    two of which it lies in proportion.
    """
    said = _replay(jobs, quantile, confidence, plain_window)
    return [
        _score(queue, said[queue], quantile) for queue in sorted(said, key=lambda one: (-said[one].jobs, one))
    ]


def _replay(
    jobs: Sequence[LoggedJob], quantile: float, confidence: float, plain_window: int
) -> dict[str, Said]:
    machine, plain = QueueBounds(quantile, confidence), _Plain(quantile, plain_window)
    said: dict[str, Said] = {}
    told: dict[int, tuple[float, float]] = {}
    for at_seconds, what, logged in _events(jobs):
        job, number = logged.job, logged.job.number
        if what is _What.SUBMITTED:
            bound = machine.submit(job)
            if bound is not None:
                told[number] = bound, plain.quantile_of(job.queue)
        elif what in (_What.ENDED, _What.ENDED_AT_ONCE):
            machine.end(number, at_seconds)
        elif logged.withdrawn:
            machine.withdraw(number)
            told.pop(number, None)
        else:
            machine.start(number, at_seconds)
            plain.add(job.queue, logged.wait_seconds)
            _note(said.setdefault(job.queue, Said()), logged.wait_seconds, told.pop(number, None))
    return said


def _note(said: Said, wait_seconds: float, told: tuple[float, float] | None) -> None:
    said.jobs += 1
    if told is not None:
        said.waits_seconds.append(wait_seconds)
        said.bounds_seconds.append(told[0])
        said.plain_seconds.append(told[1])


def _events(jobs: Sequence[LoggedJob]) -> Iterator[tuple[float, _What, LoggedJob]]:
    """When, what, and to whom; within a second in the order of their numbers."""
    found: list[tuple[float, int, int]] = []
    for logged in jobs:
        number, submitted, left = logged.job.number, logged.job.submitted_seconds, logged.left_queue_seconds
        found.append((submitted, _What.SUBMITTED, number))
        found.append((left, _What.LEFT_QUEUE if left > submitted else _What.LEFT_QUEUE_AT_ONCE, number))
        if not logged.withdrawn:
            ended = left + logged.run_seconds
            found.append((ended, _What.ENDED if ended > left else _What.ENDED_AT_ONCE, number))
    by_number = {logged.job.number: logged for logged in jobs}
    for at_seconds, what, number in sorted(found):
        yield at_seconds, _What(what), by_number[number]


@dataclass(slots=True)
class _Plain:
    """The quantile of the last waits of each queue, as they are."""

    quantile: float
    window: int
    _queues: dict[str, SortedWindow] = field(default_factory=dict, init=False)

    def add(self, queue: str, wait_seconds: float) -> None:
        if queue not in self._queues:
            self._queues[queue] = SortedWindow(self.window)
        self._queues[queue].add(wait_seconds)

    def quantile_of(self, queue: str) -> float:
        """Of a queue of which a wait is known."""
        ordered = self._queues[queue].ordered
        below, part = divmod(self.quantile * (len(ordered) - 1), 1.0)
        low, high = ordered[int(below)], ordered[min(int(below) + 1, len(ordered) - 1)]
        return low + part * (high - low)


def _score(queue: str, said: Said, quantile: float) -> Score:
    return Score(
        queue,
        said.jobs,
        len(said.waits_seconds),
        _figures(said.waits_seconds, said.bounds_seconds, quantile),
        _figures(said.waits_seconds, said.plain_seconds, quantile),
    )


def _figures(waits: list[float], bounds: list[float], quantile: float) -> Figures:
    return Figures(
        coverage(waits, [0.0] * len(waits), bounds),
        pinball_loss(waits, bounds, quantile),
        median(bounds) if bounds else None,
    )
