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
from collections.abc import Sequence
from dataclasses import dataclass, field

import scipy  # its parts are loaded when they are used: most processes never ask for an interval

from forecasting.base import Abstained, InvalidNumber
from forecasting.windows import SortedWindow

LEAST_RESIDUALS = 2
_ROUNDING = 1e-9  # (n + 1) a / 2 is a whole number for the n that matter most


@dataclass(slots=True)
class Residuals:
    """The last signed one-step residuals of one forecaster, in the unit of the series."""

    window: SortedWindow = field(default_factory=lambda: SortedWindow(100))

    def __len__(self) -> int:
        return len(self.window)

    def add(self, residual: float) -> None:
        """Take in truth minus forecast, a finite number."""
        if not math.isfinite(residual):
            raise InvalidNumber(f"expected a finite residual, got {residual!r}")
        self.window.add(residual)

    def around(self, point: float, probabilities: Sequence[float]) -> dict[float, float]:
        """Return the value that the next one undercuts with each of *probabilities*, given its forecast
        *point*.

        Raises:
            Abstained: fewer than two residuals.
            InvalidNumber: a probability is not inside (0, 1).
        """
        return {probability: _finite(point + self._quantile(probability)) for probability in probabilities}

    def _quantile(self, probability: float) -> float:
        if probability == 0.5:
            return 0.0
        ends = self.interval(abs(1.0 - 2.0 * probability))
        return ends[probability > 0.5]

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends between which the next residual lies with probability *level*.

        Raises:
            Abstained: fewer than two residuals.
            InvalidNumber: *level* is not inside (0, 1).
        """
        tail = lower_tail(level)
        n = len(self.window)
        if n < LEAST_RESIDUALS:
            raise Abstained("too_few", f"{n} residuals are known, an interval needs {LEAST_RESIDUALS}")
        rank = math.floor((n + 1) * tail + _ROUNDING)
        if rank:
            return self.window.ordered[rank - 1], self.window.ordered[-rank]
        reach = float(scipy.special.stdtrit(n, 1.0 - tail)) * _root_mean_square(self.window.ordered)
        return -reach, reach


def lower_tail(level: float) -> float:
    """The probability below an interval that covers *level* and leaves as much above: 0.1 for 0.8.

    Raises:
        InvalidNumber: *level* is not inside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise InvalidNumber(f"expected a level between 0 and 1, got {level!r}")
    return round((1.0 - level) / 2.0, 12)


def _finite(value: float) -> float:
    return min(max(value, -sys.float_info.max), sys.float_info.max)


def _root_mean_square(numbers: list[float]) -> float:
    largest = max(abs(number) for number in numbers)
    if not largest:
        return 0.0
    return largest * math.sqrt(sum((number / largest) ** 2 for number in numbers) / len(numbers))
