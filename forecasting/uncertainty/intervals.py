"""Intervals around a forecast, from the residuals of earlier forecasts.

Residuals are signed, actual value minus forecast, one step ahead. The last 100 of them are used, so the
interval follows a series whose noise changes. There are two kinds:

- **Enough residuals** (9 for 80 %, 19 for 90 %): the interval has order statistics as its ends. With n
  exchangeable residuals the next one is below the k-th smallest with probability k / (n + 1), whatever their
  distribution. So for the level 1 - a the lower end is the floor((n + 1) a / 2)-th smallest residual, and the
  upper end has the same rank from above; the coverage is at least 1 - a. This is the finite-sample correction
  of split conformal prediction (Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005),
  applied to each tail alone (Romano, Patterson, Candes, "Conformalized Quantile Regression", NeurIPS 2019,
  theorem 2), so skewed residuals give a skewed interval.
- **Few residuals** (from 2): the interval is the predictive interval of a normal residual of mean zero and
  unknown variance, +- t(n degrees of freedom) times the root mean square (Student 1908; Geisser, "Predictive
  Inference", 1993). The mean is assumed to be zero, not estimated, so that two equal residuals do not give an
  interval of no width. The interval reaches at least as far as the residuals.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import scipy  # loads its parts when they are used: most processes never need an interval

from forecasting.base import Abstained, InvalidNumber
from forecasting.learning.windows import SortedWindow

MIN_RESIDUALS = 2
# Probabilities of the stored quantiles; the other quantiles are interpolated.
QUANTILE_LEVELS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4),
    *(0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995),
)
_ROUNDING = 1e-9  # tolerance for (n + 1) a / 2, which is a whole number for many n


@dataclass(slots=True)
class Residuals:
    """The last residuals of a forecaster, in the unit of the series: signed, one step ahead."""

    window: SortedWindow = field(default_factory=lambda: SortedWindow(100))

    def __len__(self) -> int:
        return len(self.window)

    def add(self, residual: float) -> None:
        """Add *residual*: the actual value minus its forecast."""
        if not math.isfinite(residual):
            raise InvalidNumber(f"expected a finite residual, got {residual!r}")
        self.window.add(residual)

    def around(self, point: float, probabilities: Sequence[float]) -> dict[float, float]:
        """Return the quantiles of the next value, given its forecast *point*; see ``quantiles_around``."""
        return quantiles_around(point, self.window.ordered, probabilities)

    def interval(self, level: float) -> tuple[float, float]:
        """Return (lower, upper), between which the next residual is with probability *level*.

        Raises:
            Abstained: there are fewer than two residuals.
            InvalidNumber: *level* is not inside (0, 1).
        """
        tail = lower_tail(level)
        _require_enough(len(self.window))
        return _interval(self.window.ordered, tail)


def quantiles_around(
    point: float, ordered: Sequence[float], probabilities: Sequence[float]
) -> dict[float, float]:
    """Return the quantiles of the next value, given its forecast *point* and the *ordered* past residuals.

    The median is *point*. Quantiles are finite and never fall with rising probability.

    Raises:
        Abstained: there are fewer than two residuals.
        InvalidNumber: a probability is not inside (0, 1).
    """
    _require_enough(len(ordered))
    return {probability: _quantile_around(point, ordered, probability) for probability in probabilities}


def _require_enough(n: int) -> None:
    if n < MIN_RESIDUALS:
        raise Abstained("too_few", f"{n} residuals are known, an interval needs {MIN_RESIDUALS}")


def _quantile_around(point: float, ordered: Sequence[float], probability: float) -> float:
    if not 0.0 < probability < 1.0:
        raise InvalidNumber(f"expected a probability between 0 and 1, got {probability!r}")
    if probability == 0.5:
        return point
    below, above = _interval(ordered, round(min(probability, 1.0 - probability), 12))
    return finite(point + (min(below, 0.0) if probability < 0.5 else max(above, 0.0)))


def _interval(ordered: Sequence[float], tail: float) -> tuple[float, float]:
    n = len(ordered)
    rank = math.floor((n + 1) * tail + _ROUNDING)
    if rank:
        return ordered[rank - 1], ordered[-rank]
    reach = _student(n, tail) * _root_mean_square(ordered)
    return min(-reach, ordered[0]), max(reach, ordered[-1])


@lru_cache(maxsize=10_000)  # the call is slow
def _student(degrees_of_freedom: int, tail: float) -> float:
    return float(scipy.special.stdtrit(degrees_of_freedom, 1.0 - tail))


def lower_tail(level: float) -> float:
    """Return the probability that a value is below the central interval of probability *level*.

    For the level 0.8 the result is 0.1.

    Raises:
        InvalidNumber: *level* is not inside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise InvalidNumber(f"expected a level between 0 and 1, got {level!r}")
    return round((1.0 - level) / 2.0, 12)


def finite(value: float) -> float:
    """Return *value*; an infinite value becomes the largest finite number of the same sign."""
    return min(max(value, -sys.float_info.max), sys.float_info.max)


def _root_mean_square(numbers: Sequence[float]) -> float:
    return math.hypot(*numbers) / math.sqrt(len(numbers))  # their squares may overflow
