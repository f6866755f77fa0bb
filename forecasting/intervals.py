"""How far from the truth a forecast may be, judged by how far the forecasts before it were.

Residuals are signed, truth minus forecast, one step ahead; the last 100 of them count, so the answer follows
a series whose noise changes. From them comes one interval for the next residual:

- **Enough residuals** (9 for 80 %, 19 for 90 %): order statistics. With n residuals the next one falls below
  the k-th smallest with probability k / (n + 1) if their order is of no account, whatever their distribution.
  So the lower end is the floor((n + 1) a / 2)-th smallest and the upper end the same rank from above, which
  covers at least 1 - a. This is the finite-sample correction of split conformal prediction (Vovk, Gammerman,
  Shafer, "Algorithmic Learning in a Random World", 2005) with each tail alone (Romano, Patterson, Candes,
  "Conformalized Quantile Regression", NeurIPS 2019, theorem 2), so skewed residuals give a skewed interval.
- **Few residuals** (from 2): the predictive interval of a normal residual of mean zero and unknown variance,
  +- t(n degrees of freedom) times the root mean square (Student 1908; Geisser, "Predictive Inference", 1993).
  The mean is taken as zero and not estimated, so that two equal misses do not look like certainty.
"""

from __future__ import annotations

import math
import sys

import scipy  # its parts are loaded when they are used: most processes never ask for an interval

from forecasting.base import Abstained, InvalidNumber
from forecasting.windows import SortedWindow

LEAST_RESIDUALS = 2
_ROUNDING = 1e-9  # (n + 1) a / 2 is a whole number for the n that matter most


class Residuals:
    """The last signed one-step residuals of one forecaster, in the unit of the series."""

    def __init__(self, window: int = 100) -> None:
        self._window = SortedWindow(window)

    def __len__(self) -> int:
        return len(self._window)

    def add(self, residual: float) -> None:
        """Take in truth minus forecast, a finite number."""
        if not math.isfinite(residual):
            raise InvalidNumber(f"expected a finite residual, got {residual!r}")
        self._window.add(residual)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends between which the next residual lies with probability *level*.

        Raises:
            Abstained: fewer than two residuals.
            InvalidNumber: *level* is not inside (0, 1).
        """
        tail = lower_tail(level)
        n = len(self._window)
        if n < LEAST_RESIDUALS:
            raise Abstained("too_few", f"{n} residuals are known, an interval needs {LEAST_RESIDUALS}")
        rank = math.floor((n + 1) * tail + _ROUNDING)
        if rank:
            return self._window.ordered[rank - 1], self._window.ordered[-rank]
        reach = float(scipy.special.stdtrit(n, 1.0 - tail)) * _root_mean_square(self._window.ordered)
        return -reach, reach


def lower_tail(level: float) -> float:
    """The probability below an interval that covers *level* and leaves as much above: 0.1 for 0.8.

    Raises:
        InvalidNumber: *level* is not inside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise InvalidNumber(f"expected a level between 0 and 1, got {level!r}")
    return round((1.0 - level) / 2.0, 12)


def around(mean: float, residuals: tuple[float, float], floor: float | None = None) -> tuple[float, float]:
    """Return the interval of the value, given its forecast *mean* and the interval of the residual.

    Both ends are finite, ordered, and at least *floor* where there is one, as for durations, which are never
    below zero. The interval of a biased forecaster need not contain its mean.
    """
    least = -sys.float_info.max if floor is None else floor
    lower, upper = (min(max(mean + residual, least), sys.float_info.max) for residual in residuals)
    return lower, upper


def _root_mean_square(numbers: list[float]) -> float:
    largest = max(abs(number) for number in numbers)
    if not largest:
        return 0.0
    return largest * math.sqrt(sum((number / largest) ** 2 for number in numbers) / len(numbers))
