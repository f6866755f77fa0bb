"""Several bounds of one wait made one, by how each has done in this queue, and by whether promises were kept.

Each way to a bound has a say by its record: by the pinball losses, in seconds, of what it said of jobs that
have started by now. This is Bernstein online aggregation (Wintenberger, "Optimal learning with Bernstein
online aggregation", Machine Learning 106, 2017), whose loss comes to that of the best way, whichever that is.

Who loses least may still miss too often: misses come by the hundred, of one user's jobs of one hour. So the
misses of what was said are counted, and each makes the bound more cautious and each hit less, as in adaptive
conformal inference (Gibbs, Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021),
but only while too many were missed since the beginning (the integral of Angelopoulos, Candès, Tibshirani,
"Conformal PID control for time series prediction", NeurIPS 2023). It is no margin that is raised, since that
would grow without end while hundreds of misses are found one after another. While there are more misses than
the binomial law allows of so many jobs, with the confidence asked for, caution comes over to the highest of
the ways. While there are more than the quantile allows, it begins at what the first way says, and goes on to
twice the longest wait of the queue so far, and no farther.

What no record helps against are jobs of a kind that were never seen, submitted before the first of them has
waited for longer than its bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from forecasting.queues.binomial import CONFIDENCE, QUANTILE, binomial_rank, promised_share

LONGER = 2.0  # times the longest wait so far: no bound is higher
_STEP = 0.2  # a miss makes so much more cautious; from 0 to 1 it takes about five
_BEYOND = 2.0  # how far caution grows past 1; from 2 on it is only lost later
_USUAL_MISSES = 0.05  # where misses are to be more common than this, they tell less and caution ends earlier
_LEAST_SQUARES = 1e-9


@dataclass(slots=True)
class Way:
    """The record of one way to bounds."""

    regret: float = 0.0  # by how much less it has lost than what was made of all
    squares: float = _LEAST_SQUARES
    largest: float = _LEAST_SQUARES

    def learn(self, regret: float) -> None:
        self.regret += regret
        self.squares += regret * regret
        self.largest = max(self.largest, abs(regret))

    def rate(self, ways: int) -> float:
        return min(0.5 / self.largest, math.sqrt(math.log(ways) / self.squares))


@dataclass(slots=True)
class Trust:
    """What is made of the bounds of some *ways*, two or more, in one queue. The first is to be the one that
    knows most of what is different now."""

    ways: list[Way]
    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    longest_seconds: float = field(default=0.0, init=False)  # wait
    _judged: int = field(default=0, init=False)
    _missed: int = field(default=0, init=False)
    _caution: float = field(default=0.0, init=False)

    def blend(self, said_seconds: Sequence[float]) -> float:
        """The mean, in logarithms, of what the ways *said*, weighted by their records."""
        rates = [way.rate(len(self.ways)) for way in self.ways]
        gains = [
            rate * way.regret - rate * rate * way.squares for way, rate in zip(self.ways, rates, strict=True)
        ]
        most = max(gains)
        weights = [rate * math.exp(gain - most) for gain, rate in zip(gains, rates, strict=True)]
        logs = sum(weight * math.log1p(said) for weight, said in zip(weights, said_seconds, strict=True))
        found = math.expm1(logs / sum(weights))
        return min(max(found, min(said_seconds)), max(said_seconds))  # whatever rounding makes of it

    def bound(self, blended_seconds: float, said_seconds: Sequence[float], oldest_seconds: float) -> float:
        """What is said: *blended_seconds*, or as much more as caution asks for. Some job has waited for
        *oldest_seconds* by now."""
        if not self._missed_more_than_promised:
            return blended_seconds
        short = self._missed > (1.0 - self.quantile) * self._judged
        least, highest = blended_seconds, max(blended_seconds, *said_seconds)
        if short:
            least = max(least, said_seconds[0])
        if self._caution <= 1.0 or not short:
            return least + min(self._caution, 1.0) * (highest - least)
        longest = max(highest, LONGER * self.longest_seconds, oldest_seconds)
        beyond = math.log1p(longest) - math.log1p(highest)
        return math.expm1(math.log1p(highest) + min(self._caution - 1.0, 1.0) * beyond)

    def judge(self, missed: bool) -> None:
        """Learn whether a job has waited for longer than what was said."""
        self._judged += 1
        self._missed += missed
        step = _STEP * (self.quantile if missed else self.quantile - 1.0)
        self._caution = min(max(self._caution + step, 0.0), self._most_cautious)

    def learn(self, said_seconds: Sequence[float], blended_seconds: float, wait_seconds: float) -> None:
        """Learn how long a job has waited of which the ways *said* this."""
        self.longest_seconds = max(self.longest_seconds, wait_seconds)
        share = promised_share(self._judged, self.quantile, self.confidence)
        loss = _loss(share, wait_seconds - blended_seconds)
        for way, said in zip(self.ways, said_seconds, strict=True):
            way.learn(loss - _loss(share, wait_seconds - said))

    @property
    def _missed_more_than_promised(self) -> bool:
        if not self._missed:
            return False
        return self._missed > self._judged - binomial_rank(self._judged, self.quantile, self.confidence)

    @property
    def _most_cautious(self) -> float:
        return 1.0 + _BEYOND * min(1.0, math.log1p(-self.quantile) / math.log(_USUAL_MISSES))


def _loss(share: float, above: float) -> float:
    """The pinball loss of a bound that is to hold for a *share*, of a wait that is so much *above* it."""
    return max(share * above, (share - 1.0) * above)
