"""Blend the forecasts of several experts by weights that are learned as actual values come.

The weight of an expert follows from its regret: by how much less the blend would have lost with more weight
on that expert. Only experts that would have improved the blend get weight. So the loss of the blend
approaches the loss of the best fixed mixture, which is at most the loss of the best expert.

This is the polynomially weighted average forecaster (Cesa-Bianchi, Lugosi, "Prediction, Learning, and Games",
2006, section 2.1) on gradients of the loss (section 2.5). Each expert has its own learning rate, as in
ML-Poly (Gaillard, Stoltz, van Erven, "A second-order bound with excess losses", COLT 2014). Experts may
sleep: a sleeping expert abstains from a value (Freund et al., "Using and combining predictors that
specialize", STOC 1997). There is no rate to tune. For series that change in unknown ways,

- regrets are measured in typical errors of the blend, so that a noisy past does not outweigh a calm present;
- a single regret counts as at most a few typical errors, so that no outlier decides alone;
- after a shift of level (``forecasting.learning.level_shift``) experts at the old level are muted;
- old regrets fade slowly, and no regret sinks below a limit; an expert at the limit is reset: it starts again
  with the learning rate of a new expert. So an expert that was wrong for a long time gets weight within about
  ten values once its forecasts are right. The limit has the effect of sharing a part of the weights
  (Herbster, Warmuth, "Tracking the best expert", Machine Learning 32, 1998) and costs nothing while nothing
  changes; the same limit makes "regret matching+" follow changes (Tammelin et al., "Solving heads-up limit
  Texas hold'em", IJCAI 2015).

Where runs overlap, or other series taught a prior, weights by normalised losses
(``forecasting.learning.loss_weights``) replace these weights, in proportion to the share of recent outcomes
that overlapped, and no overlapping outcome proves a shift of level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forecasting.learning.level_shift import LevelShift
from forecasting.learning.loss_weights import LossWeights
from forecasting.learning.scale import TypicalSize

Numbers = NDArray[np.float64]

_MOST = 5.0  # typical errors: the limit of a slope, and of a distance between two forecasts
_DECAY = 0.999  # factor of old regrets at each value
_MIN_REGRET = -20.0
_ZERO = np.zeros(())  # an array without dimensions: numpy converts a plain number at each use
_MIN_SCALE = np.array(1e-12)  # lower limit of squared regrets, if experts hardly ever disagree
_MIN_ERRORS = 10  # errors needed before one of them can indicate a shift of level
_FARTHEST = 30.0  # typical errors: the limit of a forecast's distance from the other experts
_FARTHEST_IN_DOUBT = 5.0  # the same limit while it is undecided whether the level has shifted
_ROUNDING = 1e-9
_PRIOR_FADES = 100.0  # values after which half of the weights come from the losses, given a prior
_OVERLAP_RATE = 0.02  # the weight of the newest outcome in the share of outcomes that overlap


@dataclass(slots=True)
class Aggregation:
    """The weights of experts, learned for one loss: the squared error if *squared*, else the pinball loss.

    The pinball loss is the loss of the quantile of *probability*, doubled; for the probability 0.5 it is the
    absolute error. All arrays of forecasts have the same order of experts, with NaN for an expert that
    sleeps. The blend is never outside the range of the forecasts.
    """

    probability: float = 0.5
    squared: bool = False
    _typical_error: TypicalSize = field(default_factory=TypicalSize, init=False)
    _regrets: Numbers = field(default_factory=lambda: np.zeros(0), init=False)
    _squares: Numbers = field(default_factory=lambda: np.zeros(0), init=False)
    _widest: float = field(default=0.0, init=False)  # squared regret
    _weights_of_all: Numbers = field(default_factory=lambda: np.zeros(0), init=False)  # if none sleeps
    _newest: float = field(default=0.0, init=False)  # actual value
    _shift: LevelShift = field(default_factory=LevelShift, init=False)
    overlapping: float = field(default=0.0, init=False)  # share of recent outcomes
    _has_prior: bool = field(default=False, init=False)
    _by_loss: LossWeights = field(default_factory=LossWeights, init=False)

    def __post_init__(self) -> None:
        self._by_loss.squared = self.squared

    def blend(self, forecasts: Numbers) -> float:
        """Return the combination of *forecasts*, of which at least one is not NaN."""
        origin, beyond, awake = self._centred(forecasts)
        return origin + self._blended(beyond, awake)

    def weights(self, forecasts: Numbers) -> Numbers:
        """Return the weight of each expert: at least 0, exactly 0 for sleeping experts, 1 in total."""
        return self._weights(self._centred(forecasts)[2], len(forecasts))

    def update(self, forecasts: Numbers, value: float, overlap: int = 0) -> float:
        """Learn the actual *value*, for which the experts had issued *forecasts*.

        *overlap* is the number of values learned since these forecasts were issued.

        Returns:
            The blend of *forecasts* before *value* was learned; NaN if all experts sleep.
        """
        origin, beyond, awake = self._centred(forecasts)
        if awake is not None and not awake.any():
            return math.nan
        if not len(self._regrets):
            self._regrets, self._squares = np.zeros(len(forecasts)), np.zeros(len(forecasts))
        blended_beyond = self._blended(beyond, awake)
        blended = origin + blended_beyond
        unit = self._typical_error.unit(min(blended, value, key=abs))
        limit = _MOST * _MOST if self.squared else _MOST
        with np.errstate(over="ignore"):  # the next line limits it
            regrets = (blended_beyond - beyond) * (self._slope(blended - value, unit) / unit)
        regrets = np.maximum(np.minimum(regrets, limit), -limit)
        self._count_overlap(overlap, forecasts, value)
        self._add(regrets if awake is None else regrets * awake)
        if overlap:
            self._shift.dismiss()
        elif self._typical_error.n > _MIN_ERRORS:
            self._shift.update(forecasts, blended, value, unit)
        self._typical_error.add(blended - value, min(blended, value, key=abs))
        self._newest = float(value)
        return blended

    def start(self, losses: Numbers) -> None:
        """Begin with the mean *losses* of the experts on other series; more and more gives way to regrets."""
        self._by_loss.start(losses)
        self._has_prior = True

    def mean_losses(self) -> Numbers:
        """Return the mean loss of each expert, in median losses; empty before the first value."""
        return self._by_loss.mean_losses()

    def widen(self, count: int) -> None:
        """Make room for *count* experts. Additional experts are appended and start without regret."""
        self._by_loss.widen(count)  # it may have a prior before the first value
        if len(self._regrets):
            start = np.zeros(count - len(self._regrets))
            self._regrets = np.concatenate([self._regrets, start])
            self._squares = np.concatenate([self._squares, start])
            self._weights_of_all = self._weighed(None, count)

    def _centred(self, forecasts: Numbers) -> tuple[float, Numbers, NDArray[np.bool_] | None]:
        """Return an origin, the distance of each forecast from the origin, and a mask of the awake experts.

        The distance is 0 for a sleeping expert. The mask is None if all experts are awake.

        After an outlier some experts stay far off, and even a small weight on them would do harm. So the
        distance of a forecast from the middle forecast is limited to many typical errors. While no shift of
        level is in doubt, the limit is at least twice the distance of the newest value from the middle
        forecast.
        """
        if self._shift.is_believed:
            forecasts = self._shift.without_late(forecasts)
        first = float(forecasts[0])
        beyond = forecasts - first  # exactly 0 where all are equal, which a mean of them need not be
        limit = self._farthest / 2.0 * self._typical_error.size
        if np.maximum.reduce(np.abs(beyond)) <= limit:  # the usual case; false if one is NaN
            return first, beyond, None
        awake = np.isfinite(forecasts)
        origin = float(forecasts[awake.argmax()])
        beyond = np.where(awake, forecasts - origin, 0.0)
        if self._typical_error.n and max(float(beyond.max()), -float(beyond.min())) > limit:
            origin, beyond = self._pulled_in(forecasts, awake)
        return origin, beyond, None if awake.all() else awake

    def _pulled_in(self, forecasts: Numbers, awake: NDArray[np.bool_]) -> tuple[float, Numbers]:
        ordered = np.sort(forecasts[awake])
        middle = float(ordered[len(ordered) // 2])
        reach = self._farthest * self._typical_error.unit(middle)
        if not self._shift.is_doubtful:
            reach = max(reach, 2.0 * abs(self._newest - middle))
        return middle, np.where(awake, (forecasts - middle).clip(-reach, reach), 0.0)

    @property
    def _farthest(self) -> float:
        return _FARTHEST_IN_DOUBT if self._shift.is_doubtful else _FARTHEST

    def _slope(self, error: float, unit: float) -> float:
        """Return the derivative of the loss with respect to a forecast that exceeded the value by *error*.

        *unit* is the typical error. For the squared error the derivative is in typical errors.
        """
        if self.squared:
            return max(-_MOST, min(_MOST, error / unit))
        if abs(error) < _ROUNDING * unit:  # its sign is left by rounding
            return 0.0
        return 2.0 - 2.0 * self.probability if error > 0.0 else -2.0 * self.probability

    def _count_overlap(self, overlap: int, forecasts: Numbers, value: float) -> None:
        if overlap or self.overlapping:
            rate = max(_OVERLAP_RATE, 1.0 / (self._typical_error.n + 1))
            self.overlapping += rate * (bool(overlap) - self.overlapping)
        self._by_loss.update(forecasts, value)

    @property
    def _share_by_loss(self) -> float:
        """The share of the weights that follows from losses, not from regrets."""
        if not self._has_prior:
            return self.overlapping
        return max(self.overlapping, _PRIOR_FADES / (_PRIOR_FADES + self._typical_error.n))

    def _add(self, regrets: Numbers) -> None:
        squares = regrets * regrets
        self._regrets = np.maximum(_DECAY * self._regrets + regrets, _MIN_REGRET)
        self._squares = _DECAY * _DECAY * self._squares * (self._regrets > _MIN_REGRET) + squares
        self._widest = max(_DECAY * self._widest, float(np.maximum.reduce(squares)))
        self._weights_of_all = self._weighed(None, len(regrets))

    def _weights(self, awake: NDArray[np.bool_] | None, count: int) -> Numbers:
        """Return the weights of *count* experts; *awake* is None if all experts are awake."""
        if awake is None and len(self._weights_of_all):
            return self._weights_of_all
        return self._weighed(awake, count)

    def _blended(self, beyond: Numbers, awake: NDArray[np.bool_] | None) -> float:
        """Return the blend's distance from the origin, given the distances *beyond* it of the experts."""
        return float(self._weights(awake, len(beyond)) @ beyond)

    def _weighed(self, awake: NDArray[np.bool_] | None, count: int) -> Numbers:
        weights = self._by_regret(awake, count)
        if share := self._share_by_loss:
            weights *= 1.0 - share
            weights += share * self._by_loss.weights(awake, count)
        return weights

    def _by_regret(self, awake: NDArray[np.bool_] | None, count: int) -> Numbers:
        if len(self._regrets):
            weights = np.maximum(self._regrets, _ZERO)
            weights /= np.maximum(self._squares + self._widest, _MIN_SCALE)
            weights *= weights
            if awake is not None:
                weights *= awake
            total = np.add.reduce(weights)
            if total > 0.0:
                weights /= total
                return weights
        return np.full(count, 1.0 / count) if awake is None else awake / max(int(awake.sum()), 1)
