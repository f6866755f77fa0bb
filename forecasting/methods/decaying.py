"""A level in which the weight of a value decays with elapsed time: for values that come irregularly.

Time is measured in typical gaps between values, so the method needs no parameter for their frequency. After a
long gap, old values weigh little compared with the next value. A forecast for a time long after the newest
value leans towards the usual level. ``forecasting.learning.levels`` has the algorithm and its sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.cadence import Cadence
from forecasting.learning.levels import MeanLevels, MedianLevels


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the level with the least absolute errors (median) or the least squared errors (mean)."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False  # equals seasonal where there is no season
    USES_TIMES: ClassVar[bool] = True

    _age: DataAge = field(default_factory=DataAge, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _for_median: MedianLevels = field(default_factory=MedianLevels, init=False)
    _for_mean: MeanLevels = field(default_factory=MeanLevels, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        elapsed = self._cadence.add(time_seconds)
        self._for_median.update(float(value), elapsed)
        self._for_mean.update(float(value), elapsed)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        ahead = self._cadence.ahead(at_seconds)
        median, mean = self._for_median.expected(ahead), self._for_mean.expected(ahead)
        return self._age.forecast(mean, "decaying", at_seconds, median=median)
