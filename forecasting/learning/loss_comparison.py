"""Compare the losses of two forecasts of the same values, and test whether the difference is chance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import scipy  # loads its parts when they are used

CONFIDENCE = 0.95  # of the interval of a gain
SIGNIFICANCE = 0.05  # a gain counts if the probability of it by chance is lower
_LARGEST_SQUARABLE = 1e145


@dataclass(slots=True)
class LossComparison:
    """The losses of two forecasts of the same values: from the own history, and by an alternative."""

    n: int = field(default=0, init=False)
    own_loss: float = field(default=0.0, init=False)  # mean
    loss: float = field(default=0.0, init=False)  # mean
    _gain: float = field(default=0.0, init=False)  # mean
    _squares: float = field(default=0.0, init=False)  # sum of squared deviations of gains from their mean

    def add(self, own_loss: float, loss: float) -> None:
        """Add the losses for one value: *own_loss* of the own history, *loss* of the alternative."""
        own_loss, loss = min(own_loss, _LARGEST_SQUARABLE), min(loss, _LARGEST_SQUARABLE)
        self.n += 1
        self.own_loss += (own_loss - self.own_loss) / self.n
        self.loss += (loss - self.loss) / self.n
        gain = own_loss - loss
        deviation = gain - self._gain
        self._gain += deviation / self.n
        self._squares += deviation * (gain - self._gain)

    @property
    def gain(self) -> float:
        """The share of the own history's loss that the alternative saves; negative if it loses more."""
        return self._gain / self.own_loss if self.own_loss else 0.0

    @property
    def p_value(self) -> float:
        """The probability of at least this gain by chance alone; small if the alternative helps.

        The test is for forecasts of the next value. Sources: Diebold, Mariano, "Comparing predictive
        accuracy", Journal of Business and Economic Statistics 13 (1995); the correction for few values and
        Student's distribution: Harvey, Leybourne, Newbold, "Testing the equality of prediction mean squared
        errors", International Journal of Forecasting 13 (1997).
        """
        if self.n < 2 or not self._squares:
            return 1.0 if self._gain <= 0.0 or self.n < 2 else 0.0
        deviation = math.sqrt(self._squares / self.n / self.n)  # of the mean; Diebold and Mariano
        statistic = self._gain / deviation * math.sqrt((self.n - 1) / self.n)  # Harvey and others
        return float(scipy.special.stdtr(self.n - 1, -statistic))

    @property
    def helps(self) -> bool:
        """Whether the loss of the alternative is significantly lower than the loss of the own history."""
        return self.gain > 0.0 and self.p_value <= SIGNIFICANCE


def gain_interval(n: int, gain: float, p_value: float) -> tuple[float, float] | None:
    """Return the interval that contains the true gain with the probability ``CONFIDENCE``.

    It follows from the gain over *n* values and its p-value: both give the deviation of the gain, if that of
    the own history's loss is neglected. None if they do not determine it.
    """
    if n < 2 or not 0.0 < p_value < 1.0:
        return None
    statistic = -float(scipy.special.stdtrit(n - 1, p_value))
    if not statistic or not math.isfinite(statistic) or statistic * gain <= 0.0:
        return None
    half_width = float(scipy.special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * gain / statistic
    return gain - half_width, gain + half_width
