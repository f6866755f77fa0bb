"""Upper bounds on the wait of a job, from everything that is known when it is submitted.

Bounds of the binomial method, for the job's queue and for its class, summarise past waits. The load of the
machine, the ages of the waiting jobs and the other jobs of the user show what is different now. A quantile
regression combines all of these, in logarithms of waits. Once the queue has its minimum history, the
regression's bound starts as the queue's bound. It moves to the regression's answer as jobs of the queue are
scored. The three bounds are the experts of an ensemble, with weights and caution for each queue
(``forecasting.queues.bound_weights``).

The regression has a level for each queue. Every hit lowers the level and every miss raises it, by steps that
get smaller, so that the bounds hold for the promised share of jobs whatever the weights are. While few jobs
are scored, the confidence demands a promised share above the requested quantile; the promised share follows
from the binomial distribution.

A job is scored as soon as the job starts or has waited for longer than its bound. The weights of the
regression are corrected by its present answer for the job, not by the issued answer. So the first miss of a
stall raises the answers for all waiting jobs, and the hundreds of jobs with the same issued bound do not
raise them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from forecasting.base import InvalidNumber
from forecasting.learning.quantile_regression import Numbers, QuantileRegression
from forecasting.queues.binomial import CONFIDENCE, QUANTILE, WaitHistory, min_history, promised_share
from forecasting.queues.bound_weights import BoundEnsemble, BoundExpert
from forecasting.queues.queue_state import SIGNALS, QueuedJob, QueueState, class_of

_RATE = 0.1  # step size of a queue's level
_FIRST_SQUARES = 0.03  # initial value, so that the hits before the first miss lower the level only a little
_HALF_WAY = 100.0  # scored jobs: then the bound of the queue and the regression have equal weights
_NEXT_CHECK = 1.05  # a waiting job is checked again at this multiple of its age, at the earliest
_MAX_LOG = 100.0  # logarithm of seconds: longer than any wait, but its exponential is finite
_NOTHING: Numbers = np.empty(0)


@dataclass(slots=True)
class QueueLevel:
    """The logarithm by which the regression's bounds for one queue are raised to keep the promised share."""

    raised: float
    scored: int = 0
    squares: float = _FIRST_SQUARES

    def learn(self, slope: float) -> None:
        self.scored += 1
        self.squares += slope * slope
        self.raised -= _RATE * slope / math.sqrt(self.squares)


@dataclass(slots=True)
class WaitingJob:
    """A waiting job with its bounds at submission; a bound is None if too few waits were known."""

    job: QueuedJob
    of_queue_seconds: float | None
    of_class_seconds: float | None
    regressed_seconds: float = 0.0
    blended_seconds: float = 0.0  # the weighted mean of the three bounds
    bound_seconds: float | None = None  # the issued bound: the blend, or more
    scaled: Numbers = field(default_factory=lambda: _NOTHING)  # signals; empty once they were learned from
    is_regression_scored: bool = False
    is_scored: bool = False

    @property
    def expert_bounds(self) -> tuple[float, float, float]:
        """The bounds of regression, queue and class; the queue's bound replaces a missing class bound."""
        of_queue = self.of_queue_seconds or 0.0
        of_class = of_queue if self.of_class_seconds is None else self.of_class_seconds
        return self.regressed_seconds, of_queue, of_class


@dataclass(slots=True)
class QueueBounds:
    """Follows the jobs of one batch system and bounds their waits. The calls come in the order of time."""

    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    _state: QueueState = field(default_factory=QueueState, init=False)
    _regression: QuantileRegression = field(
        default_factory=lambda: QuantileRegression.of(SIGNALS + 1), init=False
    )
    _queues: dict[str, WaitHistory] = field(default_factory=dict, init=False)
    _classes: dict[str, WaitHistory] = field(default_factory=dict, init=False)
    _levels: dict[str, QueueLevel] = field(default_factory=dict, init=False)  # by queue
    _ensembles: dict[str, BoundEnsemble] = field(default_factory=dict, init=False)  # by queue
    _waiting: dict[int, WaitingJob] = field(default_factory=dict, init=False)
    # heaps of the times when bounds, and those of the regression, are exceeded
    _due: list[tuple[float, int]] = field(default_factory=list, init=False)
    _regressed_due: list[tuple[float, int]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        min_history(self.quantile, self.confidence)  # refuses invalid probabilities

    def bound(self, job: QueuedJob) -> float | None:
        """Return the bound on the wait of *job* in seconds; None if too few waits of its queue are known.

        The state does not change.
        """
        return self._bounds(job)[0].bound_seconds

    def submit(self, job: QueuedJob) -> float | None:
        """Add *job* to the waiting jobs, and return the bound on its wait, as ``bound`` does.

        Raises:
            InvalidNumber: another job with the number of *job* is already waiting or running.
        """
        if job.number in self._state.active_jobs:
            raise InvalidNumber(f"cannot submit job {job.number}: it is already waiting or running")
        self._score_overdue(job.submitted_seconds)
        waiting, signals = self._bounds(job)
        self._waiting[job.number] = waiting
        if waiting.bound_seconds is not None:
            self._regression.observe(signals)
            if job.queue not in self._levels:
                raised = math.log1p(waiting.regressed_seconds) - self._regression.answer(waiting.scaled)
                self._levels[job.queue] = QueueLevel(raised)
                self._ensembles[job.queue] = self._new_ensemble()
            heappush(self._due, (job.submitted_seconds + waiting.bound_seconds, job.number))
            heappush(self._regressed_due, (job.submitted_seconds + waiting.regressed_seconds, job.number))
        for history in self._histories(job):
            history.submit(job.submitted_seconds)
        self._state.submit(job)
        return waiting.bound_seconds

    def start(self, number: int, at_seconds: float) -> None:
        """Learn the wait of the job *number*, which starts to run at *at_seconds*."""
        waiting = self._leave(number)
        wait_seconds = max(0.0, at_seconds - waiting.job.submitted_seconds)
        if waiting.bound_seconds is not None:
            self._score(waiting, wait_seconds > waiting.bound_seconds)
            self._ensembles[waiting.job.queue].learn(
                waiting.expert_bounds, waiting.blended_seconds, wait_seconds
            )
            self._score_regression(waiting, wait_seconds > waiting.regressed_seconds)
            if len(waiting.scaled):
                self._move_weights(waiting, math.log1p(wait_seconds) > self._log_of_regression(waiting))
        of_queue, of_class = self._histories(waiting.job)
        of_queue.add(at_seconds, wait_seconds, waiting.of_queue_seconds)
        of_class.add(at_seconds, wait_seconds, waiting.of_class_seconds)
        self._state.start(number, at_seconds)

    def withdraw(self, number: int) -> None:
        """Remove the job *number*, which was cancelled while it waited."""
        self._leave(number)
        self._state.withdraw(number)

    def end(self, number: int, at_seconds: float) -> None:
        """Remove the job *number*, whose run ended at *at_seconds*."""
        if number in self._waiting or number not in self._state.active_jobs:
            raise InvalidNumber(f"cannot end job {number}: it is not running")
        self._state.end(number, at_seconds)

    def _leave(self, number: int) -> WaitingJob:
        if number not in self._waiting:
            raise InvalidNumber(f"cannot remove job {number} from its queue: it is not waiting")
        waiting = self._waiting.pop(number)
        for history in self._histories(waiting.job):
            history.withdraw(waiting.job.submitted_seconds)
        return waiting

    def _histories(self, job: QueuedJob) -> tuple[WaitHistory, WaitHistory]:
        """Return the histories of waits in the queue and in the class of *job*."""
        histories = []
        for kinds, name in ((self._queues, job.queue), (self._classes, class_of(job))):
            if name not in kinds:
                kinds[name] = WaitHistory(self.quantile, self.confidence)
            histories.append(kinds[name])
        return histories[0], histories[1]

    def _bounds(self, job: QueuedJob) -> tuple[WaitingJob, list[float]]:
        """Return *job* with its bounds, and the signals from which the regression computed its bound."""
        at_seconds = job.submitted_seconds
        of_queue, of_class = (
            history.bound(at_seconds) if history else None
            for history in (self._queues.get(job.queue), self._classes.get(class_of(job)))
        )
        waiting = WaitingJob(job, of_queue, of_class)
        if of_queue is None:
            return waiting, []
        usual_log = math.log1p(of_queue if of_class is None else of_class)
        signals = [usual_log, *self._state.signals(job, at_seconds)]
        waiting.scaled = self._regression.scaled(signals)
        waiting.regressed_seconds = self._regressed(waiting, of_queue)
        ensemble = self._ensembles.get(job.queue) or self._new_ensemble()
        waiting.blended_seconds = ensemble.blend(waiting.expert_bounds)
        limit_seconds = self._state.limit_seconds(job.queue, at_seconds)
        waiting.bound_seconds = ensemble.bound(waiting.blended_seconds, waiting.expert_bounds, limit_seconds)
        return waiting, signals

    def _new_ensemble(self) -> BoundEnsemble:
        return BoundEnsemble([BoundExpert(), BoundExpert(), BoundExpert()], self.quantile, self.confidence)

    def _regressed(self, waiting: WaitingJob, of_queue_seconds: float) -> float:
        """Return the bound of the regression, in seconds, for a job at its submission.

        While few jobs of the queue are scored, the result is close to *of_queue_seconds*, the queue's bound.
        """
        if not (level := self._levels.get(waiting.job.queue)):
            return of_queue_seconds
        share = level.scored / (level.scored + _HALF_WAY)
        log = share * self._log_of_regression(waiting) + (1.0 - share) * math.log1p(of_queue_seconds)
        limit_seconds = self._state.limit_seconds(waiting.job.queue, waiting.job.submitted_seconds)
        return min(math.expm1(log), limit_seconds)

    def _log_of_regression(self, waiting: WaitingJob) -> float:
        """Return log(1 + seconds) of the present bound of the regression for a job."""
        log = self._regression.answer(waiting.scaled) + self._levels[waiting.job.queue].raised
        return min(max(log, 0.0), _MAX_LOG)

    def _score_overdue(self, at_seconds: float) -> None:
        """Score the jobs that have exceeded their bounds by *at_seconds*, as misses."""
        for number in _popped(self._due, at_seconds):
            if waiting := self._waiting.get(number):
                self._score(waiting, missed=True)
        for number in _popped(self._regressed_due, at_seconds):
            waiting = self._waiting.get(number)
            if waiting is not None and len(waiting.scaled):
                self._score_regression(waiting, missed=True)
                self._check_overdue(waiting, at_seconds)

    def _check_overdue(self, waiting: WaitingJob, at_seconds: float) -> None:
        """Move the weights of the regression if the job has exceeded its present bound.

        Otherwise schedule a check for the time at which the job exceeds the bound.
        """
        submitted_seconds, bound_log = waiting.job.submitted_seconds, self._log_of_regression(waiting)
        age_seconds = at_seconds - submitted_seconds
        if math.log1p(age_seconds) > bound_log:
            self._move_weights(waiting, missed=True)
        else:
            due_seconds = max(math.expm1(bound_log), _NEXT_CHECK * age_seconds)
            heappush(self._regressed_due, (submitted_seconds + due_seconds, waiting.job.number))

    def _score(self, waiting: WaitingJob, missed: bool) -> None:
        """Score the issued bound of *waiting* in the ensemble of its queue, at most once for each job."""
        if not waiting.is_scored:
            waiting.is_scored = True
            self._ensembles[waiting.job.queue].score(missed)

    def _score_regression(self, waiting: WaitingJob, missed: bool) -> None:
        """Move the regression's level for the job's queue, at most once for each job."""
        if not waiting.is_regression_scored:
            waiting.is_regression_scored = True
            level = self._levels[waiting.job.queue]
            level.learn(self._slope(level, missed))

    def _move_weights(self, waiting: WaitingJob, missed: bool) -> None:
        """Move the weights of the regression and drop the job's signals: this happens once for each job."""
        self._regression.learn(waiting.scaled, self._slope(self._levels[waiting.job.queue], missed))
        waiting.scaled = _NOTHING

    def _slope(self, level: QueueLevel, missed: bool) -> float:
        """Return the slope of the pinball loss: -s after a miss, else 1 - s, with the promised share s."""
        share = promised_share(level.scored, self.quantile, self.confidence)
        return -share if missed else 1.0 - share


def _popped(due: list[tuple[float, int]], at_seconds: float) -> Iterator[int]:
    """Remove the jobs that are due before *at_seconds* from the heap *due*, and yield their numbers."""
    while due and due[0][0] < at_seconds:
        yield heappop(due)[1]
