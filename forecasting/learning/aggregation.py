"""Many forecasts of one number made one, by weights that are learned as truths come.

Each expert is weighted by its regret: by how much the blend would have missed less, had it leaned further
towards that expert. Who would have improved the blend gets weight, whoever would not gets none, so that the
blend comes to miss no more than the best fixed mixture would have, which is better than the best expert.

This is the polynomially weighted average forecaster (Cesa-Bianchi, Lugosi, "Prediction, Learning, and Games",
2006, section 2.1) on gradients of the loss (2.5), with a learning rate for each expert, as in ML-Poly
(Gaillard, Stoltz, van Erven, "A second-order bound with excess losses", COLT 2014), and with experts that may
sleep (Freund et al., "Using and combining predictors that specialize", STOC 1997). It has no rate to tune.
For series of which nothing is known beforehand, and which change,

- regrets are measured in typical misses of the blend, so that a noisy past does not outweigh a calm present;
- no single regret counts more than a few of those, so that no outlier decides alone;
- after a shift of level (``forecasting.learning.level_shift``) those sleep who have not come over yet;
- old regrets fade slowly, and nobody's sink below a depth; who has been there begins anew, with the learning
  rate of a newcomer. So who was wrong for long is listened to within some ten values of being right. This
  does what sharing a part of the weights does (Herbster, Warmuth, "Tracking the best expert", Machine
  Learning 32, 1998) and costs nothing while nothing changes; the same cut makes "regret matching+" follow
  changes (Tammelin et al., "Solving heads-up limit Texas hold'em", IJCAI 2015).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forecasting.learning.level_shift import Shift
from forecasting.learning.scale import Typical

Numbers = NDArray[np.float64]

_MOST = 5.0  # typical misses that a slope, and a distance between two forecasts, count at most
_KEPT = 0.999  # of regrets at each value
_DEPTH = -20.0  # below which no sum of regrets sinks
_NONE = np.zeros(())  # an array of no dimension, since numbers are made into one at each use
_LEAST_SCALE = np.array(1e-12)  # of squared regrets: who hardly ever disagrees is weighted as if by this much
_JUDGED = 10  # misses that are known before one of them tells of a shift of level
_FARTHEST = 30.0  # typical misses that an expert is heard from the others
_FARTHEST_IN_DOUBT = 5.0  # the same while nobody knows whether the truth, which is far away, stays there
_ROUNDING = 1e-9


@dataclass(slots=True)
class Aggregation:
    """Weights for one loss: the pinball loss of *probability*, doubled (0.5: the absolute miss), or the
    *squared* miss.

    What experts say comes as an array of one length, at each time the same expert at the same place; one that
    sleeps says NaN. Answers lie between those of the experts.
    """

    probability: float = 0.5
    squared: bool = False
    _typical: Typical = field(default_factory=Typical, init=False)
    _regrets: Numbers = field(default_factory=lambda: np.zeros(0), init=False)
    _squares: Numbers = field(default_factory=lambda: np.zeros(0), init=False)
    _widest: float = field(default=0.0, init=False)  # squared regret
    _of_all: Numbers = field(default_factory=lambda: np.zeros(0), init=False)  # weights, where all are awake
    _newest: float = field(default=0.0, init=False)  # truth
    _shift: Shift = field(default_factory=Shift, init=False)

    def blend(self, said: Numbers) -> float:
        """Return the one number for what the experts *said*, of whom at least one must be awake."""
        origin, beyond, awake = self._heard(said)
        return origin + float(self._weights(awake, len(said)) @ beyond)

    def weights(self, said: Numbers) -> Numbers:
        """Return the weight of each expert: at least 0, for sleepers 0, together 1."""
        return self._weights(self._heard(said)[2], len(said))

    def update(self, said: Numbers, value: float) -> None:
        """Learn that the experts *said* this, and the truth was *value*."""
        origin, beyond, awake = self._heard(said)
        if awake is not None and not awake.any():
            return
        if not len(self._regrets):
            self._regrets, self._squares = np.zeros(len(said)), np.zeros(len(said))
        blended_beyond = float(self._weights(awake, len(said)) @ beyond)
        blended = origin + blended_beyond
        unit = self._typical.unit(min(blended, value, key=abs))
        limit = _MOST * _MOST if self.squared else _MOST
        with np.errstate(over="ignore"):  # what is too large for a number is cut next
            regrets = (blended_beyond - beyond) * (self._slope(blended - value, unit) / unit)
        regrets = np.maximum(np.minimum(regrets, limit), -limit)
        self._note(regrets if awake is None else regrets * awake)
        if self._typical.n > _JUDGED:
            self._shift.note(said, blended, value, unit)
        self._typical.add(blended - value, min(blended, value, key=abs))
        self._newest = float(value)

    def widen(self, count: int) -> None:
        """Make room for *count* experts: the additional ones come last, and start without regret."""
        if len(self._regrets):
            start = np.zeros(count - len(self._regrets))
            self._regrets = np.concatenate([self._regrets, start])
            self._squares = np.concatenate([self._squares, start])
            self._of_all = self._weighed(None, count)

    def _heard(self, said: Numbers) -> tuple[float, Numbers, NDArray[np.bool_] | None]:
        """Return an origin, by how much each expert says more (sleepers: 0), and who is awake; None if all.

        After a wild value some experts are far out for long, where even a small weight would do harm: nobody
        is heard from farther away from the middle expert than many typical misses, unless truth was there and
        there is no doubt about it.
        """
        if self._shift.believed:
            said = self._shift.listened_to(said)
        first = float(said[0])
        beyond = said - first  # where all say the same, rounding must not make something else of it
        limit = self._farthest / 2.0 * self._typical.size
        if np.maximum.reduce(np.abs(beyond)) <= limit:  # not so if one says NaN: the quick way of every day
            return first, beyond, None
        awake = np.isfinite(said)
        origin = float(said[awake.argmax()])
        beyond = np.where(awake, said - origin, 0.0)
        if self._typical.n and max(float(beyond.max()), -float(beyond.min())) > limit:
            origin, beyond = self._pulled_in(said, awake)
        return origin, beyond, None if awake.all() else awake

    def _pulled_in(self, said: Numbers, awake: NDArray[np.bool_]) -> tuple[float, Numbers]:
        heard = np.sort(said[awake])
        middle = float(heard[len(heard) // 2])
        reach = self._farthest * self._typical.unit(middle)
        if not self._shift.is_doubtful:
            reach = max(reach, 2.0 * abs(self._newest - middle))
        return middle, np.where(awake, (said - middle).clip(-reach, reach), 0.0)

    @property
    def _farthest(self) -> float:
        return _FARTHEST_IN_DOUBT if self._shift.is_doubtful else _FARTHEST

    def _slope(self, miss: float, unit: float) -> float:
        """The derivative of the loss by the forecast, in typical misses."""
        if self.squared:
            return max(-_MOST, min(_MOST, miss / unit))
        if abs(miss) < _ROUNDING * unit:  # on which side rounding has left it means nothing
            return 0.0
        return 2.0 - 2.0 * self.probability if miss > 0.0 else -2.0 * self.probability

    def _note(self, regrets: Numbers) -> None:
        squares = regrets * regrets
        self._regrets = np.maximum(_KEPT * self._regrets + regrets, _DEPTH)
        self._squares = _KEPT * _KEPT * self._squares * (self._regrets > _DEPTH) + squares
        self._widest = max(_KEPT * self._widest, float(np.maximum.reduce(squares)))
        self._of_all = self._weighed(None, len(regrets))

    def _weights(self, awake: NDArray[np.bool_] | None, count: int) -> Numbers:
        """The weights of *count* experts; *awake* is None where all are."""
        return self._of_all if awake is None and len(self._of_all) else self._weighed(awake, count)

    def _weighed(self, awake: NDArray[np.bool_] | None, count: int) -> Numbers:
        if len(self._regrets):
            weights = np.maximum(self._regrets, _NONE)
            weights /= np.maximum(self._squares + self._widest, _LEAST_SCALE)
            weights *= weights
            if awake is not None:
                weights *= awake
            total = np.add.reduce(weights)
            if total > 0.0:
                weights /= total
                return weights
        return np.full(count, 1.0 / count) if awake is None else awake / max(int(awake.sum()), 1)
