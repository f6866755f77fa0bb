"""Upper bounds on the wait of the next job of a queue: the binomial method on its past waits.

The probability that the k-th smallest of n waits exceeds the quantile q follows from the binomial
distribution, whatever the distribution of waits. The bound is the k-th smallest wait for the least k for
which this probability reaches the confidence c: with confidence c, a share q of jobs waits no longer than
the bound. Such a k exists if q^n <= 1 - c: for q = c = 0.95 this needs 59 waits. Beyond 500 waits the
binomial distribution is approximated by the normal distribution.

The distribution of waits changes. A job is a *hit* if it waits no longer than its bound, else a *miss*. A run
of misses or hits too long to be chance marks a change point. The history before it is dropped, except for a
minimum, which is dropped once as many new waits exist. The more similar consecutive waits are, the longer a
run must be: the length follows from the autocorrelation at lag 1 of the normal scores of the waits. The
method is BMBP, later part of QBETS: Brevik, Nurmi, Wolski, "Predicting bounds on queuing delay for
batch-scheduled parallel machines", PPoPP 2006; Nurmi, Brevik, Wolski, "QBETS: queue bounds estimation from
time series", JSSPP 2007. This module adds two things to the method. It also counts runs of hits: if jobs are
independent, the run of hits that marks a change point is as unlikely as the run of misses that marks one. And
it uses the jobs that are still waiting.

A job that has waited for two hours so far will wait longer than two hours; while no job starts, this is the
only new information. The times that waiting jobs have waited so far are censored observations. The bound is
the quantile k/n of the product-limit estimate (Kaplan, Meier, "Nonparametric estimation from incomplete
observations", JASA 53, 1958), which is the k-th smallest wait if no job is waiting. So the bound of a queue
rises while the queue stalls. A waiting job counts only if it was submitted after the history begins: of jobs
submitted earlier, only the slow jobs are still waiting.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import scipy  # loads its parts when they are used

from forecasting.base import InvalidNumber
from forecasting.learning.windows import SortedWindow

QUANTILE = 0.95
CONFIDENCE = 0.95
EXACT_UNTIL = 500
MAX_HISTORY = 2000
# The number of misses in a row that marks a change point, for autocorrelations of 0, 0.1, ... 1.
RUNS = (3, 3, 4, 4, 5, 6, 8, 10, 14, 28, 28)
_MAX_SCORED = 500  # scored jobs: beyond this number the promised share stays constant
_MAX_AGES = 50  # of waiting jobs; if more jobs wait, a sample of them is used
_ROUNDING = 1e-9


@lru_cache(maxsize=64)
def min_history(quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> int:
    """Return the number of waits that a bound needs: the least n with quantile^n <= 1 - confidence.

    Raises:
        InvalidNumber: *quantile* or *confidence* is not inside (0, 1).
    """
    for probability in (quantile, confidence):
        if not 0.0 < probability < 1.0:
            raise InvalidNumber(f"expected a probability between 0 and 1, got {probability!r}")
    return max(1, math.ceil(math.log1p(-confidence) / math.log(quantile) - _ROUNDING))


@lru_cache(maxsize=1 << 14)
def binomial_rank(n: int, quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> int:
    """Return the rank of the bound among *n* waits, 1 for the smallest; *n* is at least ``min_history``.

    With *confidence*, the bound holds for the share *quantile* of jobs.
    """
    if n <= EXACT_UNTIL:
        # the probability that more waits than this are below the quantile is less than 1 - confidence
        below = math.ceil(float(scipy.special.bdtrik(confidence, n, quantile)) - _ROUNDING)
        return min(n, below + 1)
    spread = float(scipy.special.ndtri(confidence)) * math.sqrt(n * quantile * (1.0 - quantile))
    return min(n, math.floor(n * quantile + spread + 0.5))


def promised_share(scored: int, quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> float:
    """Return the share of *scored* jobs that must be hits to promise the share *quantile* with *confidence*.

    The fewer jobs are *scored*, the higher the result; it is always below 1 and a little above *quantile*.
    """
    n = max(min(scored, _MAX_SCORED), min_history(quantile, confidence))
    return min(binomial_rank(n, quantile, confidence) / n, (1.0 + quantile) / 2.0)


def autocorrelation(waits: Sequence[float]) -> float:
    """Return the autocorrelation at lag 1 of the normal scores of *waits*, which are in order of time."""
    _, places, counts = np.unique(np.array(waits), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[places]  # equal waits share their rank
    scores = scipy.special.ndtri((ranks - 0.5) / len(waits))
    power = float(scores @ scores)
    return float(scores[:-1] @ scores[1:]) / power if power > _ROUNDING else 0.0


def run_of_change(correlation: float) -> int:
    """Return how many misses in a row mark a change point, given the autocorrelation *correlation*."""
    return RUNS[round(10.0 * min(max(correlation, 0.0), 1.0))]


def product_limit(
    waits: Sequence[float], ages: Sequence[float], level: float, each: float = 1.0
) -> float | None:
    """Return the quantile *level* of all waits, or None if the estimate does not reach *level*.

    The estimate does not reach *level* if too many jobs have already waited for longer than the longest of
    *waits*.

    Args:
        waits: the waits that have ended, sorted.
        ages: the times that waiting jobs have waited so far, sorted.
        each: the number of waiting jobs for which each age stands.
    """
    total, share = len(waits) + each * len(ages), 1.0  # share: the weight of a job after the censored ones
    for place, age in enumerate(ages):
        enough = _ended_for(level, total, place * each, share)
        ended = bisect_left(waits, age)
        if enough <= ended:
            return waits[enough - 1]
        at_risk = total - place * each - ended
        if at_risk - each < 0.5:  # no job is left, but for rounding
            return None
        share *= at_risk / (at_risk - each)
    enough = _ended_for(level, total, len(ages) * each, share)
    return waits[enough - 1] if enough <= len(waits) else None


def _ended_for(level: float, total: float, censored: float, share: float) -> int:
    """Return how many ended waits the estimate needs to reach *level*.

    Args:
        total: number of all jobs, ended or waiting.
        censored: number of waiting jobs that have waited for less time than these ended waits.
        share: weight of an ended job that waited for longer than the censored jobs.
    """
    return max(1, math.ceil(total - censored - (1.0 - level) * total / share - _ROUNDING))


@dataclass(slots=True)
class WaitHistory:
    """The waits of jobs of one kind as they become known, and the bound of the next wait."""

    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    changes: int = field(default=0, init=False)
    history: SortedWindow = field(default_factory=lambda: SortedWindow(MAX_HISTORY), init=False)
    _known_at: deque[float] = field(default_factory=deque, init=False)  # the times of the history
    _submitted: list[float] = field(default_factory=list, init=False)  # times of waiting jobs, sorted
    _run: int = field(default=RUNS[0], init=False)
    _run_of_length: int = field(default=0, init=False)  # of the history from which _run was computed
    _misses: int = field(default=0, init=False)
    _hits: int = field(default=0, init=False)
    _old: int = field(default=0, init=False)  # waits from before a change point that are still in the history

    def __post_init__(self) -> None:
        self.history.size = max(self.history.size, self.minimum)

    @property
    def minimum(self) -> int:
        """The number of waits that a bound needs."""
        return min_history(self.quantile, self.confidence)

    def bound(self, at_seconds: float) -> float | None:
        """Return the upper bound, in seconds, on the wait of a job submitted at *at_seconds*.

        Returns None if too few waits are known.

        If too many jobs have already waited for longer than any known wait, the bound is the longest time
        that a job has waited so far: a stall will on average last for as long as it has lasted so far.
        """
        n, ordered = len(self.history), self.history.ordered
        if n < self.minimum:
            return None
        rank = binomial_rank(n, self.quantile, self.confidence)
        first = bisect_left(self._submitted, self._known_at[0])
        waiting = len(self._submitted) - first
        if not waiting:
            return ordered[rank - 1]
        sample = self._submitted[first :: 1 + waiting // _MAX_AGES]
        ages = [at_seconds - submitted for submitted in reversed(sample)]
        bound = product_limit(ordered, ages, rank / n, waiting / len(ages))
        return max(ordered[-1], ages[-1]) if bound is None else bound

    def submit(self, at_seconds: float) -> None:
        """Add a job that is submitted at *at_seconds* and waits."""
        insort(self._submitted, at_seconds)

    def withdraw(self, submitted_seconds: float) -> None:
        """Remove a waiting job that was submitted at *submitted_seconds*, without learning a wait."""
        del self._submitted[bisect_left(self._submitted, submitted_seconds)]

    def add(self, known_at_seconds: float, wait_seconds: float, bound: float | None) -> None:
        """Learn a wait that has ended.

        *bound* is the bound at the job's submission, None if too few waits were known then.
        """
        self.history.add(wait_seconds)
        self._known_at.append(known_at_seconds)
        if self._old:
            self._old -= 1
            self._shorten()
        elif len(self._known_at) > len(self.history):
            self._known_at.popleft()
        if bound is not None:
            self._count(wait_seconds > bound)
        if len(self.history) >= max(self.minimum, 2 * self._run_of_length):
            self._update_run()

    def _count(self, missed: bool) -> None:
        self._misses = self._misses + 1 if missed else 0
        self._hits = 0 if missed else self._hits + 1
        if self._misses >= self._run or self._hits >= self._run_of_hits():
            self._misses = self._hits = 0
            self.changes += 1
            self._old = self.minimum
            self._shorten()
            self._update_run()

    def _run_of_hits(self) -> float:
        return self._run * math.log1p(-self.quantile) / math.log(self.quantile)

    def _shorten(self) -> None:
        """Drop the oldest waits; keep the minimum that a bound needs."""
        self.history.drop_oldest(len(self.history) - self.minimum)
        while len(self._known_at) > len(self.history):
            self._known_at.popleft()

    def _update_run(self) -> None:
        self._run_of_length = len(self.history)
        self._run = run_of_change(autocorrelation(self.history.recent))
