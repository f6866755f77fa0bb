"""Blend the bounds of several experts on one wait by their losses in this queue, and correct the blend.

The weight of an expert follows from its record: the pinball losses, in seconds, of its bounds for the jobs
that have started. The method is Bernstein online aggregation (Wintenberger, "Optimal learning with Bernstein
online aggregation", Machine Learning 106, 2017), whose loss approaches the loss of the best expert. The
largest regret of all experts limits each rate: an expert that equals the blend has no regret, and a rate
without a limit would leave it all of the weight for good.

A miss is a job that waits longer than its bound, a hit any other job. The expert with the least loss may
still miss too often, since misses come by the hundred, from the jobs of one user in one hour. So the misses
of the issued bounds are counted. Each miss makes the bound more cautious and each hit less cautious, as in
adaptive conformal inference (Gibbs, Candès, "Adaptive conformal inference under distribution shift", NeurIPS
2021), but only while there are too many misses since the beginning (the integral of Angelopoulos, Candès,
Tibshirani, "Conformal PID control for time series prediction", NeurIPS 2023). Caution is no margin: a margin
would grow without limit while hundreds of misses are found one after another. While there are more misses
than the binomial distribution allows for the confidence, caution moves the bound from the blend towards the
highest of the leading experts, which know the present situation. While there are more misses than the
quantile allows, caution moves the bound upwards from the bound of the first expert, at most to half more than
the highest leading expert. More would hardly be exceeded less often: a miss that is this far off comes from a
job unlike all before. The experts of a queue that opened late were taught by the jobs of other queues, so
while there are more misses than the binomial distribution allows, its bound is at least the highest of the
leading experts, whatever the caution.

No record helps with jobs of a new kind that are submitted before the first of them has exceeded its bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from forecasting.queues.binomial import CONFIDENCE, QUANTILE, binomial_rank, promised_share

_STEP = 0.2  # increase of caution at a miss: about five misses raise it from 0 to 1
_MARGIN = 1.5  # times the highest leading expert: the limit of caution
_BEYOND = 2.0  # how far caution may exceed 1; more would only make it slower to fall
_USUAL_MISSES = 0.05  # if a larger share may be missed, a miss tells less and the limit is lower
_MIN_SQUARES = 1e-9


@dataclass(slots=True)
class BoundExpert:
    """The record of one expert, from which its learning rate follows; *prior* is its weight at the start."""

    prior: float = 1.0
    regret: float = 0.0  # the loss of the blend minus the loss of this expert
    squares: float = _MIN_SQUARES
    largest: float = _MIN_SQUARES

    def learn(self, regret: float) -> None:
        self.regret += regret
        self.squares += regret * regret
        self.largest = max(self.largest, abs(regret))

    def rate(self, count: int, largest: float) -> float:
        """Return the learning rate of one of *count* experts, of whose regrets *largest* is the largest."""
        return min(0.5 / largest, math.sqrt(math.log(count) / self.squares))


@dataclass(slots=True)
class BoundEnsemble:
    """The ensemble of at least two *experts* for one queue.

    The first *leading* experts should be the experts that know the present situation.
    """

    experts: list[BoundExpert]
    leading: int = 2
    is_late: bool = False  # whether the queue opened on a machine whose other queues had taught the experts
    quantile: float = QUANTILE
    confidence: float = CONFIDENCE
    _scored: int = field(default=0, init=False)
    _missed: int = field(default=0, init=False)
    _caution: float = field(default=0.0, init=False)

    def blend(self, bounds_seconds: Sequence[float]) -> float:
        """Return the weighted mean, in logarithms, of *bounds_seconds*, the bounds of the experts."""
        largest = max(expert.largest for expert in self.experts)
        rates = [expert.rate(len(self.experts), largest) for expert in self.experts]
        gains = [
            rate * expert.regret - rate * rate * expert.squares
            for expert, rate in zip(self.experts, rates, strict=True)
        ]
        most = max(gains)
        weights = [
            expert.prior * rate * math.exp(gain - most)
            for expert, gain, rate in zip(self.experts, gains, rates, strict=True)
        ]
        logs = sum(weight * math.log1p(bound) for weight, bound in zip(weights, bounds_seconds, strict=True))
        blended = math.expm1(logs / sum(weights))
        return min(max(blended, min(bounds_seconds)), max(bounds_seconds))  # in spite of rounding

    def bound(self, blended_seconds: float, bounds_seconds: Sequence[float], limit_seconds: float) -> float:
        """Return the bound to issue: *blended_seconds*, the result of ``blend``, raised by caution.

        Caution raises no bound above *limit_seconds*.
        """
        if not self._misses_too_often:
            return blended_seconds
        is_short = self._missed > (1.0 - self.quantile) * self._scored
        least, highest = blended_seconds, max(blended_seconds, *bounds_seconds[: self.leading])
        if self.is_late:
            least = highest
        elif is_short:
            least = max(least, bounds_seconds[0])
        if self._caution <= 1.0 or not is_short:
            return least + min(self._caution, 1.0) * (highest - least)
        margin = math.pow(_MARGIN, min(self._caution - 1.0, 1.0))
        return max(highest, min(highest * margin, limit_seconds))

    def score(self, missed: bool) -> None:
        """Learn whether a job *missed*: it waited for longer than its issued bound."""
        self._scored += 1
        self._missed += missed
        step = _STEP * (self.quantile if missed else self.quantile - 1.0)
        self._caution = min(max(self._caution + step, 0.0), self._max_caution)

    def learn(self, bounds_seconds: Sequence[float], blended_seconds: float, wait_seconds: float) -> None:
        """Learn the wait of a job.

        *bounds_seconds* are the bounds of the experts at the job's submission, *blended_seconds* is their
        blend.
        """
        share = promised_share(self._scored, self.quantile, self.confidence)
        loss = _loss(share, wait_seconds - blended_seconds)
        for expert, bound in zip(self.experts, bounds_seconds, strict=True):
            expert.learn(loss - _loss(share, wait_seconds - bound))

    @property
    def _misses_too_often(self) -> bool:
        if not self._missed:
            return False
        return self._missed > self._scored - binomial_rank(self._scored, self.quantile, self.confidence)

    @property
    def _max_caution(self) -> float:
        return 1.0 + _BEYOND * min(1.0, math.log1p(-self.quantile) / math.log(_USUAL_MISSES))


def _loss(share: float, above: float) -> float:
    """Return the pinball loss of a bound for a *share* of jobs; *above* is the wait minus the bound."""
    return max(share * above, (share - 1.0) * above)
