"""Upper bounds on waits from a quantile regression on the signals of the queue state, in logarithms of waits.

Once a queue has its minimum history, the regression's bound starts as the queue's bound. It moves to the
regression's answer as jobs of the queue are scored. The regression has a level for each queue. Every hit
lowers the level and every miss raises it, by steps that get smaller, so that the bounds hold for the promised
share of jobs whatever the weights are. While few jobs are scored, the confidence demands a promised share
above the requested quantile; the promised share follows from the binomial distribution.

The level starts where the first bound of the regression equals the queue's. The other queues of a machine may
have taught the regression before a queue opens. The level of such a late queue starts half-way between the
mean level of the others and the bound of the binomial method on the residuals of its first waits, their
distances from the answers at submission. The queue's bound also loses its weight sooner. The residuals alone
are few, and cost a twentieth of the loss; the mean alone left more queues with too many misses.

A job is scored as soon as the job starts or has waited for longer than its bound. The weights are corrected
by the present answer for the job, not by the bound at its submission. So the first miss of a stall raises the
answers for all waiting jobs, and the hundreds of jobs with the same bound do not raise them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from forecasting.learning.quantile_regression import Numbers, QuantileRegression
from forecasting.queues.binomial import CONFIDENCE, QUANTILE, binomial_rank, min_history, promised_share

_RATE = 0.1  # step size of a queue's level
_FIRST_SQUARES = 0.03  # initial value, so that the hits before the first miss lower the level only a little
_HALF_WAY = 100.0  # scored jobs: then the bound of the queue and the regression have equal weights
_LATE_HALF_WAY = 10.0  # the same for a queue that opens late
_EXPERIENCED = 2000  # scored jobs of other queues: then a queue opens late
_NEXT_CHECK = 1.05  # a waiting job is checked again at this multiple of its age, at the earliest
_MAX_LOG = 100.0  # logarithm of seconds: longer than any wait, but its exponential is finite


@dataclass(slots=True)
class QueueLevel:
    """The logarithm by which the regression's bounds for one queue are raised to keep the promised share."""

    raised: float
    is_late: bool = False
    scored: int = 0
    squares: float = _FIRST_SQUARES

    @property
    def share(self) -> float:
        """The weight of the regression; the rest is the weight of the queue's bound."""
        return self.scored / (self.scored + (_LATE_HALF_WAY if self.is_late else _HALF_WAY))

    def learn(self, slope: float) -> None:
        self.scored += 1
        self.squares += slope * slope
        self.raised -= _RATE * slope / math.sqrt(self.squares)


@dataclass(slots=True)
class RegressedJob:
    """A waiting job with its bound at submission.

    The job stays until the weights have learned from it; its bound is scored before, at most once.
    """

    queue: str
    submitted_seconds: float
    bound_seconds: float
    scaled: Numbers
    is_scored: bool = False


@dataclass(slots=True)
class RegressedBounds:
    """One regression with its levels by queue, and the waiting jobs that it will learn from."""

    regression: QuantileRegression
    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    _levels: dict[str, QueueLevel] = field(default_factory=dict, init=False)
    _waiting: dict[int, RegressedJob] = field(default_factory=dict, init=False)
    _unbounded: dict[int, tuple[str, float]] = field(default_factory=dict, init=False)  # queues and answers
    _residuals: dict[str, list[float]] = field(default_factory=dict, init=False)  # of queues without a level
    _due: list[tuple[float, int]] = field(default_factory=list, init=False)  # times when bounds are exceeded

    def bound(self, queue: str, scaled: Numbers, of_queue_seconds: float, limit_seconds: float) -> float:
        """Return the bound, in seconds, for a job of *queue* at its submission, at most *limit_seconds*.

        While few jobs of the queue are scored, the result is close to *of_queue_seconds*, the queue's bound.
        """
        if not (level := self._levels.get(queue)):
            return of_queue_seconds
        log = level.share * self._log(queue, scaled) + (1.0 - level.share) * math.log1p(of_queue_seconds)
        return min(math.expm1(log), limit_seconds)

    def opened_late(self, queue: str) -> bool:
        """Return whether the other queues had taught the regression before *queue* had its first bound."""
        return self._levels[queue].is_late

    def submit(self, number: int, job: RegressedJob) -> None:
        """Add a job to the waiting jobs."""
        if job.queue not in self._levels:
            self._levels[job.queue] = self._late_level(job.queue) or self._first_level(job)
        self._waiting[number] = job
        heappush(self._due, (job.submitted_seconds + job.bound_seconds, number))

    def submit_unbounded(self, number: int, queue: str, scaled: Numbers) -> None:
        """Add a job to the waiting jobs; its *queue* had no bound at its submission."""
        self._unbounded[number] = queue, self.regression.answer(scaled)

    def start(self, number: int, wait_seconds: float) -> None:
        """Learn the wait of the job *number* unless its miss has been learned already."""
        if unbounded := self._unbounded.pop(number, None):
            queue, answer = unbounded
            if queue not in self._levels:
                self._residuals.setdefault(queue, []).append(math.log1p(wait_seconds) - answer)
        if job := self._waiting.pop(number, None):
            self._score(job, wait_seconds > job.bound_seconds)
            self._learn(job, math.log1p(wait_seconds) > self._log(job.queue, job.scaled))

    def withdraw(self, number: int) -> None:
        """Forget the job *number*."""
        self._waiting.pop(number, None)
        self._unbounded.pop(number, None)

    def score_overdue(self, at_seconds: float) -> None:
        """Score the jobs that have exceeded their bounds by *at_seconds*, as misses.

        A job that has exceeded its present bound moves the weights. Any other job is checked again at the
        time when it exceeds the bound.
        """
        for number in popped(self._due, at_seconds):
            if job := self._waiting.get(number):
                self._score(job, missed=True)
                age_seconds, bound_log = at_seconds - job.submitted_seconds, self._log(job.queue, job.scaled)
                if math.log1p(age_seconds) > bound_log:
                    del self._waiting[number]
                    self._learn(job, missed=True)
                else:
                    due_seconds = max(math.expm1(bound_log), _NEXT_CHECK * age_seconds)
                    heappush(self._due, (job.submitted_seconds + due_seconds, number))

    def _late_level(self, queue: str) -> QueueLevel | None:
        """Return the level at which *queue* starts if it opens late; it has no level yet."""
        residuals = sorted(self._residuals.pop(queue, ()))
        elsewhere = sum(level.scored for level in self._levels.values())
        if elsewhere < _EXPERIENCED or len(residuals) < min_history(self.quantile, self.confidence):
            return None
        of_residuals = residuals[binomial_rank(len(residuals), self.quantile, self.confidence) - 1]
        of_others = sum(level.scored * level.raised for level in self._levels.values()) / elsewhere
        return QueueLevel(0.5 * (of_others + of_residuals), is_late=True)

    def _first_level(self, job: RegressedJob) -> QueueLevel:
        """Return the level at which the bound of *job*, the first of its queue, is the queue's."""
        return QueueLevel(math.log1p(job.bound_seconds) - self.regression.answer(job.scaled))

    def _log(self, queue: str, scaled: Numbers) -> float:
        """Return log(1 + seconds) of the present bound for a job."""
        log = self.regression.answer(scaled) + self._levels[queue].raised
        return min(max(log, 0.0), _MAX_LOG)

    def _score(self, job: RegressedJob, missed: bool) -> None:
        """Move the level of the job's queue, at most once for each job."""
        if not job.is_scored:
            job.is_scored = True
            level = self._levels[job.queue]
            level.learn(self._slope(level, missed))

    def _learn(self, job: RegressedJob, missed: bool) -> None:
        self.regression.learn(job.scaled, self._slope(self._levels[job.queue], missed))

    def _slope(self, level: QueueLevel, missed: bool) -> float:
        """Return the slope of the pinball loss: -s after a miss, else 1 - s, with the promised share s."""
        share = promised_share(level.scored, self.quantile, self.confidence)
        return -share if missed else 1.0 - share


def popped(due: list[tuple[float, int]], at_seconds: float) -> Iterator[int]:
    """Remove the jobs that are due before *at_seconds* from the heap *due*, and yield their numbers."""
    while due and due[0][0] < at_seconds:
        yield heappop(due)[1]
