"""How long the next job of a queue will wait at most: binomial-method bounds of its past waits.

The k-th smallest of n waits is above the quantile q of their law with a probability that the binomial law
alone gives, whatever the law of waits is; the least k for which it is at least the confidence c is used, so a
share q of jobs waits no longer, with confidence c. There is such a k once q^n <= 1 - c: from 59 waits on for
95/95. Past 500 the binomial law is taken as normal.

The waits of a queue change. A run of misses that chance does not make, or of hits, is a change: what was
before it is let go, but for the least history, which goes as soon as there is as much that is new. How long
such a run is depends on how alike neighbouring waits are: on the autocorrelation at lag 1 of their normal
scores. The method is BMBP, later part of QBETS: Brevik, Nurmi, Wolski, "Predicting bounds on queuing delay
for batch-scheduled parallel machines", PPoPP 2006; Nurmi, Brevik, Wolski, "QBETS: queue bounds estimation
from time series", JSSPP 2007. Ours are the length of the run of hits, which is as unlikely as that of misses
if jobs are independent, and the part of the jobs that still wait:

That a job has waited for two hours by now says that its wait is longer, and while no job starts this is the
only news. Such waits are censored observations. The bound is the quantile k/n of the product-limit estimate
(Kaplan, Meier, "Nonparametric estimation from incomplete observations", JASA 53, 1958), which is the k-th
smallest wait where nothing waits. So a queue that stalls raises the bound while it stalls. Of the jobs that
wait those count that came since the history begins: of those before, only the slow are still to be seen.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import scipy  # its parts are loaded when they are used

from forecasting.base import InvalidNumber
from forecasting.learning.windows import SortedWindow

QUANTILE = 0.95
CONFIDENCE = 0.95
EXACT_UNTIL = 500
LONGEST_HISTORY = 2000
# How many misses in a row are a change, for autocorrelations of 0, 0.1, ... 1.
RUNS = (3, 3, 4, 4, 5, 6, 8, 10, 14, 28, 28)
_MOST_JUDGED = 500  # the promised share comes no nearer to the quantile than with so many
_MOST_AGES = 50  # of jobs that wait; where more do, some stand for all
_ROUNDING = 1e-9


@lru_cache(maxsize=64)
def least_history(quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> int:
    """How many waits must be known for a bound: the least n with quantile^n <= 1 - confidence.

    Raises:
        InvalidNumber: a probability that is not inside (0, 1).
    """
    for probability in (quantile, confidence):
        if not 0.0 < probability < 1.0:
            raise InvalidNumber(f"expected a probability between 0 and 1, got {probability!r}")
    return max(1, math.ceil(math.log1p(-confidence) / math.log(quantile) - _ROUNDING))


@lru_cache(maxsize=1 << 14)
def binomial_rank(n: int, quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> int:
    """Which of *n* waits is the bound, counted from 1 at the smallest; *n* is at least ``least_history``."""
    if n <= EXACT_UNTIL:
        below = math.ceil(float(scipy.special.bdtrik(confidence, n, quantile)) - _ROUNDING)
        return min(
            n, below + 1
        )  # more than so many waits are below the quantile too rarely to be reckoned with
    spread = float(scipy.special.ndtri(confidence)) * math.sqrt(n * quantile * (1.0 - quantile))
    return min(n, math.floor(n * quantile + spread + 0.5))


def promised_share(judged: int, quantile: float = QUANTILE, confidence: float = CONFIDENCE) -> float:
    """Of how many jobs a bound is to hold, for their share to be *quantile* with *confidence* once so many
    are *judged*: the fewer were, the more. It stays between the quantile and 1, and a little above the
    quantile however many there are."""
    n = max(min(judged, _MOST_JUDGED), least_history(quantile, confidence))
    return min(binomial_rank(n, quantile, confidence) / n, (1.0 + quantile) / 2.0)


def alikeness(waits: Sequence[float]) -> float:
    """The autocorrelation at lag 1 of the normal scores of *waits*, in order of time; 0 of a constant."""
    _, places, counts = np.unique(np.array(waits), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[places]  # those that are equal share theirs
    scores = scipy.special.ndtri((ranks - 0.5) / len(waits))
    power = float(scores @ scores)
    return float(scores[:-1] @ scores[1:]) / power if power > _ROUNDING else 0.0


def run_of_change(alike: float) -> int:
    """How many misses in a row are a change where neighbours are *alike*, an autocorrelation."""
    return RUNS[round(10.0 * min(max(alike, 0.0), 1.0))]


def product_limit(
    waits: Sequence[float], ages: Sequence[float], level: float, each: float = 1.0
) -> float | None:
    """The quantile *level* of all waits, of which *waits* have ended and *ages* still go on; both sorted. An
    age is that of *each* so many jobs.

    None where *level* is not reached, since too many go on for longer than any that has ended.
    """
    total, share = len(waits) + each * len(ages), 1.0  # by what those have grown who stand for the lost ones
    for place, age in enumerate(ages):
        enough = _ended_for(level, total, place * each, share)
        ended = bisect_left(waits, age)
        if enough <= ended:
            return waits[enough - 1]
        at_risk = total - place * each - ended
        if at_risk - each < 0.5:  # none is left: of whole jobs, but for rounding
            return None
        share *= at_risk / (at_risk - each)
    enough = _ended_for(level, total, len(ages) * each, share)
    return waits[enough - 1] if enough <= len(waits) else None


def _ended_for(level: float, total: float, censored: float, share: float) -> int:
    """How many must have ended for the estimate to reach *level*, if *censored* went out of sight before."""
    return max(1, math.ceil(total - censored - (1.0 - level) * total / share - _ROUNDING))


@dataclass(slots=True)
class Waits:
    """The waits of jobs of one kind as they become known, and how long the next will wait at most."""

    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    changes: int = field(default=0, init=False)
    history: SortedWindow = field(default_factory=lambda: SortedWindow(LONGEST_HISTORY), init=False)
    _known_at: deque[float] = field(default_factory=deque, init=False)  # when each of the history was
    _submitted: list[float] = field(default_factory=list, init=False)  # when those that wait were, sorted
    _run: int = field(default=RUNS[0], init=False)
    _looked_at: int = field(default=0, init=False)  # how long the history was that _run is of
    _misses: int = field(default=0, init=False)
    _hits: int = field(default=0, init=False)
    _old: int = field(default=0, init=False)  # how many from before a change are still in the history

    def __post_init__(self) -> None:
        self.history.size = max(self.history.size, self.least)

    @property
    def least(self) -> int:
        """How many waits must be known for a bound."""
        return least_history(self.quantile, self.confidence)

    def bound(self, at_seconds: float) -> float | None:
        """How long a job will wait that is submitted now, at most; None if too few waits are known.

        If too many jobs wait for longer than any wait that is known, it is as long as the oldest has waited:
        a job that comes in the middle of a stall has half of it ahead.
        """
        n, ordered = len(self.history), self.history.ordered
        if n < self.least:
            return None
        rank = binomial_rank(n, self.quantile, self.confidence)
        first = bisect_left(self._submitted, self._known_at[0])
        wait = len(self._submitted) - first
        if not wait:
            return ordered[rank - 1]
        some = self._submitted[first :: 1 + wait // _MOST_AGES]
        ages = [at_seconds - submitted for submitted in reversed(some)]
        found = product_limit(ordered, ages, rank / n, wait / len(ages))
        return max(ordered[-1], ages[-1]) if found is None else found

    def submit(self, at_seconds: float) -> None:
        """A job begins to wait."""
        insort(self._submitted, at_seconds)

    def withdraw(self, submitted_seconds: float) -> None:
        """The job that was submitted then waits no more, and nothing is learned from it."""
        del self._submitted[bisect_left(self._submitted, submitted_seconds)]

    def add(self, known_at_seconds: float, wait_seconds: float, bound: float | None) -> None:
        """Learn a wait that has ended. *bound* is what was said when the job was submitted, if anything."""
        self.history.add(wait_seconds)
        self._known_at.append(known_at_seconds)
        if self._old:
            self._old -= 1
            self._shorten()
        elif len(self._known_at) > len(self.history):
            self._known_at.popleft()
        if bound is not None:
            self._judge(wait_seconds > bound)
        if len(self.history) >= max(self.least, 2 * self._looked_at):
            self._look()

    def _judge(self, missed: bool) -> None:
        self._misses = self._misses + 1 if missed else 0
        self._hits = 0 if missed else self._hits + 1
        if self._misses >= self._run or self._hits >= self._run_of_hits():
            self._misses = self._hits = 0
            self.changes += 1
            self._old = self.least
            self._shorten()
            self._look()

    def _run_of_hits(self) -> float:
        return self._run * math.log1p(-self.quantile) / math.log(self.quantile)

    def _shorten(self) -> None:
        """Keep no more than the least history."""
        self.history.drop_oldest(len(self.history) - self.least)
        while len(self._known_at) > len(self.history):
            self._known_at.popleft()

    def _look(self) -> None:
        self._looked_at = len(self.history)
        self._run = run_of_change(alikeness(self.history.recent))
