"""Upper bounds on the wait of a job, from everything that is known when it is submitted.

Bounds of the binomial method, for the job's queue and for its class, summarise past waits. The load of the
machine, the ages of the waiting jobs and the other jobs of the user show what is different now. Two quantile
regressions combine all of these: one as a weighted sum, the other also by partitions, which know that a
signal matters more in some situations (``forecasting.queues.regressed``). The four bounds are the experts of
an ensemble, with weights and caution for each queue (``forecasting.queues.bound_weights``).

A job behind a hundred waiting jobs of its user waits for these, which no earlier job may have done. Its bound
is at least the time in which they start at the pace of the last starts, and a quarter more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from heapq import heappush

from forecasting.base import InvalidNumber
from forecasting.learning.quantile_regression import Numbers, QuantileRegression, SignalScale
from forecasting.queues.binomial import CONFIDENCE, QUANTILE, WaitHistory, min_history
from forecasting.queues.bound_weights import BoundEnsemble, BoundExpert
from forecasting.queues.queue_state import QUEUE_SIGNALS, SIGNALS, QueuedJob, QueueState, class_of
from forecasting.queues.regressed import RegressedBounds, RegressedJob, popped

_PARTITIONS = 64
_PRIORS = 0.2, 0.6, 0.1, 0.1  # of the four experts; the partitions know most
_LEADING = 2


def _linear_bounds() -> RegressedBounds:
    return RegressedBounds(QuantileRegression.of(1 + SIGNALS))


def _partitioned_bounds() -> RegressedBounds:
    return RegressedBounds(QuantileRegression.of(1 + SIGNALS + QUEUE_SIGNALS, _PARTITIONS))


@dataclass(slots=True)
class WaitingJob:
    """A waiting job with its bounds at submission; a bound is None if too few waits were known."""

    job: QueuedJob
    of_queue_seconds: float | None
    of_class_seconds: float | None
    linear_seconds: float = 0.0
    partitioned_seconds: float = 0.0
    blended_seconds: float = 0.0  # the weighted mean of the four bounds
    bound_seconds: float | None = None  # the issued bound: the blend, or more
    is_scored: bool = False

    @property
    def expert_bounds(self) -> tuple[float, float, float, float]:
        """The bounds of regressions, queue and class; the queue's bound replaces a missing class bound."""
        of_queue = self.of_queue_seconds or 0.0
        of_class = of_queue if self.of_class_seconds is None else self.of_class_seconds
        return self.linear_seconds, self.partitioned_seconds, of_queue, of_class


@dataclass(slots=True)
class QueueBounds:
    """Follows the jobs of one batch system and bounds their waits. The calls come in the order of time."""

    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    _state: QueueState = field(default_factory=QueueState, init=False)
    _scale: SignalScale = field(
        default_factory=lambda: SignalScale.of(1 + SIGNALS + QUEUE_SIGNALS), init=False
    )
    _linear: RegressedBounds = field(default_factory=_linear_bounds, init=False)
    _partitioned: RegressedBounds = field(default_factory=_partitioned_bounds, init=False)
    _queues: dict[str, WaitHistory] = field(default_factory=dict, init=False)
    _classes: dict[str, WaitHistory] = field(default_factory=dict, init=False)
    _ensembles: dict[str, BoundEnsemble] = field(default_factory=dict, init=False)  # by queue
    _waiting: dict[int, WaitingJob] = field(default_factory=dict, init=False)
    _due: list[tuple[float, int]] = field(default_factory=list, init=False)  # times when bounds are exceeded

    def __post_init__(self) -> None:
        min_history(self.quantile, self.confidence)  # refuses invalid probabilities
        for regressed in (self._linear, self._partitioned):
            regressed.quantile, regressed.confidence = self.quantile, self.confidence

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
        waiting, signals, scaled = self._bounds(job)
        self._waiting[job.number] = waiting
        if waiting.bound_seconds is not None:
            self._scale.observe(signals)
            heappush(self._due, (job.submitted_seconds + waiting.bound_seconds, job.number))
            for regressed, bound_seconds in (
                (self._linear, waiting.linear_seconds),
                (self._partitioned, waiting.partitioned_seconds),
            ):
                regressed.submit(
                    job.number, RegressedJob(job.queue, job.submitted_seconds, bound_seconds, scaled)
                )
            if job.queue not in self._ensembles:
                self._ensembles[job.queue] = self._new_ensemble(self._linear.opened_late(job.queue))
        else:
            self._linear.submit_unbounded(job.number, job.queue, scaled)
            self._partitioned.submit_unbounded(job.number, job.queue, scaled)
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
        self._linear.start(number, wait_seconds)
        self._partitioned.start(number, wait_seconds)
        of_queue, of_class = self._histories(waiting.job)
        of_queue.add(at_seconds, wait_seconds, waiting.of_queue_seconds)
        of_class.add(at_seconds, wait_seconds, waiting.of_class_seconds)
        self._state.start(number, at_seconds)

    def withdraw(self, number: int) -> None:
        """Remove the job *number*, which was cancelled while it waited."""
        self._leave(number)
        self._linear.withdraw(number)
        self._partitioned.withdraw(number)
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

    def _bounds(self, job: QueuedJob) -> tuple[WaitingJob, list[float], Numbers]:
        """Return *job* with its bounds, and the signals, raw and scaled, that the regressions used."""
        at_seconds = job.submitted_seconds
        of_queue, of_class = (
            history.bound(at_seconds) if history else None
            for history in (self._queues.get(job.queue), self._classes.get(class_of(job)))
        )
        waiting = WaitingJob(job, of_queue, of_class)
        usual_seconds = self._longest_seconds(job.queue) if of_queue is None else of_queue
        usual_log = math.log1p(usual_seconds if of_class is None else of_class)
        signals = [usual_log, *self._state.signals(job, at_seconds)]
        scaled = self._scale.scaled(signals)
        if of_queue is None:
            return waiting, signals, scaled
        limit_seconds = self._state.limit_seconds(job.queue, at_seconds)
        waiting.linear_seconds = self._linear.bound(job.queue, scaled, of_queue, limit_seconds)
        waiting.partitioned_seconds = self._partitioned.bound(job.queue, scaled, of_queue, limit_seconds)
        ensemble = self._ensembles.get(job.queue) or self._new_ensemble()
        waiting.blended_seconds = ensemble.blend(waiting.expert_bounds)
        issued_seconds = ensemble.bound(waiting.blended_seconds, waiting.expert_bounds, limit_seconds)
        waiting.bound_seconds = max(issued_seconds, self._state.drain_seconds(job.user, at_seconds))
        return waiting, signals, scaled

    def _longest_seconds(self, queue: str) -> float:
        """Return the longest known wait of *queue*, the best substitute for a bound that needs more waits."""
        history = self._queues.get(queue)
        return history.history.ordered[-1] if history and len(history.history) else 0.0

    def _new_ensemble(self, is_late: bool = False) -> BoundEnsemble:
        experts = [BoundExpert(prior) for prior in _PRIORS]
        return BoundEnsemble(
            experts, _LEADING, is_late=is_late, quantile=self.quantile, confidence=self.confidence
        )

    def _score_overdue(self, at_seconds: float) -> None:
        """Score the jobs that have exceeded their bounds by *at_seconds*, as misses."""
        for number in popped(self._due, at_seconds):
            if waiting := self._waiting.get(number):
                self._score(waiting, missed=True)
        self._linear.score_overdue(at_seconds)
        self._partitioned.score_overdue(at_seconds)

    def _score(self, waiting: WaitingJob, missed: bool) -> None:
        """Score the issued bound of *waiting* in the ensemble of its queue, at most once for each job."""
        if not waiting.is_scored:
            waiting.is_scored = True
            self._ensembles[waiting.job.queue].score(missed)
