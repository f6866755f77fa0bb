"""How long a job will wait at most, from all that is known when it is submitted.

The binomial-method bounds of jobs of its queue and of its class say what waits were like; how full the
machine is, who waits for how long by now and what the user has there say what is different now. A quantile
regression weighs them up, in logarithms of waits. What it says of a queue begins as the bound of the queue,
when that has its least history, and comes over to the regression as jobs of the queue are judged. Which of
the three is believed how far, and how cautious one must be with all of them, each queue's record says
(``forecasting.queues.bound_weights``).

The regression has a level of its own for each queue. Every hit lowers it and every miss raises it, a little
less each time, so that the promised share of jobs stays within its bounds whatever its weights do. The share
is the quantile of the binomial law: while few jobs were judged, it is higher than what was asked for, and
that is what the confidence is for.

A job is judged as soon as it starts or has waited for longer than its bound. The regression learns from it by
what it would say of it by now: hundreds of jobs that were told the same before a stall are news only once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from forecasting.base import InvalidNumber
from forecasting.learning.quantile_regression import Numbers, QuantileRegression
from forecasting.queues.binomial import CONFIDENCE, QUANTILE, Waits, least_history, promised_share
from forecasting.queues.bound_weights import LONGER, Trust, Way
from forecasting.queues.queue_state import SIGNALS, Backlog, QueuedJob, class_of

_RATE = 0.1  # of a queue's level
_FIRST_SQUARES = 0.03  # so that the hits before the first miss, which say little, lower it little
_HALF_WAY = 100.0  # jobs judged until the bound of the queue and the regression have the same say
_LOOKED_AT_AGAIN = 1.05  # times its age, at the earliest, a job that waits on is
_MOST_LOG = 100.0  # of seconds: there are no longer waits, and its exponential is a number
_NOTHING: Numbers = np.empty(0)


@dataclass(slots=True)
class Level:
    """What the bounds of one queue are raised by, in logarithms, so that they keep what they promise."""

    raised: float
    judged: int = 0
    squares: float = _FIRST_SQUARES

    def learn(self, slope: float) -> None:
        self.judged += 1
        self.squares += slope * slope
        self.raised -= _RATE * slope / math.sqrt(self.squares)


@dataclass(slots=True)
class Told:
    """A job that waits, and what was said when it was submitted. None: too little was known."""

    job: QueuedJob
    of_queue_seconds: float | None
    of_class_seconds: float | None
    regressed_seconds: float = 0.0
    blended_seconds: float = 0.0  # of these three, by their records
    bound_seconds: float | None = None  # what was said: as much, or more
    scaled: Numbers = field(default_factory=lambda: _NOTHING)  # what was regressed; empty once it has taught
    regressed_judged: bool = False
    judged: bool = False

    @property
    def ways(self) -> tuple[float, float, float]:
        """The bounds that there are of it, if any; in place of one of its class that of its queue."""
        of_queue = self.of_queue_seconds or 0.0
        of_class = of_queue if self.of_class_seconds is None else self.of_class_seconds
        return self.regressed_seconds, of_queue, of_class


@dataclass(slots=True)
class QueueBounds:
    """Follows the jobs of one batch system. The calls come in the order of time."""

    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    _backlog: Backlog = field(default_factory=Backlog, init=False)
    _regression: QuantileRegression = field(
        default_factory=lambda: QuantileRegression.of(SIGNALS + 1), init=False
    )
    _queues: dict[str, Waits] = field(default_factory=dict, init=False)
    _classes: dict[str, Waits] = field(default_factory=dict, init=False)
    _levels: dict[str, Level] = field(default_factory=dict, init=False)  # of queues
    _trusts: dict[str, Trust] = field(default_factory=dict, init=False)  # of queues
    _told: dict[int, Told] = field(default_factory=dict, init=False)
    _due: list[tuple[float, int]] = field(default_factory=list, init=False)  # a heap: when bounds are over
    _regressed_due: list[tuple[float, int]] = field(default_factory=list, init=False)  # the regression's
    _longest_seconds: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        least_history(self.quantile, self.confidence)  # refuses what are no probabilities

    def bound(self, job: QueuedJob) -> float | None:
        """For how many seconds *job* will wait at most if it is submitted as it says. None: too little is
        known of its queue. Changes nothing."""
        return self._say(job)[0].bound_seconds

    def submit(self, job: QueuedJob) -> float | None:
        """*job* begins to wait; what ``bound`` says of it is returned.

        Raises:
            InvalidNumber: a job of this number waits or runs already.
        """
        if job.number in self._backlog.tasks:
            raise InvalidNumber(f"job {job.number} is submitted, but waits or runs already")
        self._judge_overdue(job.submitted_seconds)
        told, signals = self._say(job)
        self._told[job.number] = told
        if told.bound_seconds is not None:
            self._regression.observe(signals)
            if job.queue not in self._levels:
                raised = math.log1p(told.regressed_seconds) - self._regression.answer(told.scaled)
                self._levels[job.queue] = Level(raised)
                self._trusts[job.queue] = self._newcomer()
            heappush(self._due, (job.submitted_seconds + told.bound_seconds, job.number))
            heappush(self._regressed_due, (job.submitted_seconds + told.regressed_seconds, job.number))
        for waits in self._waits(job):
            waits.submit(job.submitted_seconds)
        self._backlog.submit(job)
        return told.bound_seconds

    def start(self, number: int, at_seconds: float) -> None:
        """The job begins to run, and its wait is known."""
        told = self._leave(number)
        wait_seconds = max(0.0, at_seconds - told.job.submitted_seconds)
        self._longest_seconds = max(self._longest_seconds, wait_seconds)
        if told.bound_seconds is not None:
            self._judge(told, wait_seconds > told.bound_seconds)
            self._trusts[told.job.queue].learn(told.ways, told.blended_seconds, wait_seconds)
            self._judge_regressed(told, wait_seconds > told.regressed_seconds)
            if len(told.scaled):
                self._teach(told, math.log1p(wait_seconds) > self._log_of_regression(told))
        of_queue, of_class = self._waits(told.job)
        of_queue.add(at_seconds, wait_seconds, told.of_queue_seconds)
        of_class.add(at_seconds, wait_seconds, told.of_class_seconds)
        self._backlog.start(number, at_seconds)

    def withdraw(self, number: int) -> None:
        """The job will never run: it was cancelled while it waited."""
        self._leave(number)
        self._backlog.withdraw(number)

    def end(self, number: int, at_seconds: float) -> None:
        """The job has run."""
        if number in self._told or number not in self._backlog.tasks:
            raise InvalidNumber(f"job {number} ends, but does not run")
        self._backlog.end(number, at_seconds)

    def _leave(self, number: int) -> Told:
        if number not in self._told:
            raise InvalidNumber(f"job {number} leaves its queue, but does not wait")
        told = self._told.pop(number)
        for waits in self._waits(told.job):
            waits.withdraw(told.job.submitted_seconds)
        return told

    def _waits(self, job: QueuedJob) -> tuple[Waits, Waits]:
        """Those of its queue, and those of its class."""
        found = []
        for kinds, name in ((self._queues, job.queue), (self._classes, class_of(job))):
            if name not in kinds:
                kinds[name] = Waits(self.quantile, self.confidence)
            found.append(kinds[name])
        return found[0], found[1]

    def _say(self, job: QueuedJob) -> tuple[Told, list[float]]:
        """What is said of *job*, and the signals that it is made from."""
        at_seconds = job.submitted_seconds
        of_queue, of_class = (
            waits.bound(at_seconds) if waits else None
            for waits in (self._queues.get(job.queue), self._classes.get(class_of(job)))
        )
        told = Told(job, of_queue, of_class)
        if of_queue is None:
            return told, []
        usual = math.log1p(of_queue if of_class is None else of_class)
        signals = [usual, *self._backlog.signals(job, at_seconds)]
        told.scaled = self._regression.scaled(signals)
        told.regressed_seconds = self._regressed(told, of_queue)
        trust = self._trusts.get(job.queue) or self._newcomer()
        told.blended_seconds = trust.blend(told.ways)
        oldest_seconds = self._backlog.oldest_seconds(at_seconds)
        told.bound_seconds = trust.bound(told.blended_seconds, told.ways, oldest_seconds)
        return told, signals

    def _newcomer(self) -> Trust:
        """For a queue that nothing was said of."""
        return Trust([Way(), Way(), Way()], self.quantile, self.confidence)

    def _regressed(self, told: Told, of_queue_seconds: float) -> float:
        """What the regression says of a job that is submitted now; at first, what its queue says."""
        if not (level := self._levels.get(told.job.queue)):
            return of_queue_seconds
        share = level.judged / (level.judged + _HALF_WAY)
        found = share * self._log_of_regression(told) + (1.0 - share) * math.log1p(of_queue_seconds)
        oldest_seconds = self._backlog.oldest_seconds(told.job.submitted_seconds)
        return min(math.expm1(found), LONGER * max(self._longest_seconds, oldest_seconds))

    def _log_of_regression(self, told: Told) -> float:
        """What the regression says now of a job that was told earlier."""
        found = self._regression.answer(told.scaled) + self._levels[told.job.queue].raised
        return min(max(found, 0.0), _MOST_LOG)

    def _judge_overdue(self, at_seconds: float) -> None:
        """Learn from the jobs that have waited for longer than their bounds by now."""
        for number in _popped(self._due, at_seconds):
            if told := self._told.get(number):
                self._judge(told, missed=True)
        for number in _popped(self._regressed_due, at_seconds):
            told = self._told.get(number)
            if told is not None and len(told.scaled):
                self._judge_regressed(told, missed=True)
                self._teach_overdue(told, at_seconds)

    def _teach_overdue(self, told: Told, at_seconds: float) -> None:
        """Move the weights if the job has waited for longer than would be said now; else look again then."""
        submitted_seconds, longer = told.job.submitted_seconds, self._log_of_regression(told)
        age_seconds = at_seconds - submitted_seconds
        if math.log1p(age_seconds) > longer:
            self._teach(told, missed=True)
        else:
            due_seconds = max(math.expm1(longer), _LOOKED_AT_AGAIN * age_seconds)
            heappush(self._regressed_due, (submitted_seconds + due_seconds, told.job.number))

    def _judge(self, told: Told, missed: bool) -> None:
        """Note in the record of its queue whether the promise was kept, once."""
        if not told.judged:
            told.judged = True
            self._trusts[told.job.queue].judge(missed)

    def _judge_regressed(self, told: Told, missed: bool) -> None:
        """Move the level of its queue, once."""
        if not told.regressed_judged:
            told.regressed_judged = True
            level = self._levels[told.job.queue]
            level.learn(self._slope(level, missed))

    def _teach(self, told: Told, missed: bool) -> None:
        """Move the weights, once."""
        self._regression.learn(told.scaled, self._slope(self._levels[told.job.queue], missed))
        told.scaled = _NOTHING

    def _slope(self, level: Level, missed: bool) -> float:
        """Of the pinball loss for the share of jobs that are to be within their bounds."""
        share = promised_share(level.judged, self.quantile, self.confidence)
        return -share if missed else 1.0 - share


def _popped(due: list[tuple[float, int]], at_seconds: float) -> Iterator[int]:
    """The numbers of those that are *due* before *at_seconds*, which leave the heap."""
    while due and due[0][0] < at_seconds:
        yield heappop(due)[1]
