"""Nearest neighbours: the values that followed pairs of values similar to the last two.

The method assumes nothing about how a value depends on earlier values, so it also fits a series that jumps
between two states, or that comes back from a peak at once. A moment is a pair of consecutive values; it is
near if its values are similar to the last two. The values that followed the nearest moments estimate the
distribution of the next value, given the last two (Lorenz, "Atmospheric predictability as revealed by
naturally occurring analogues", J. Atmos. Sci. 26, 1969; Yakowitz, "Nearest-neighbour methods for time series
analysis", J. Time Series Analysis 8, 1987).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.windows import median_of_sorted

NEIGHBOURS = (11, 21, 41)
_MOMENTS = 200  # the number of past moments to compare with
_LAGS = 2
_EARLIER_WEIGHT = 0.5  # the weight of the last value but one in the distance


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the median and the mean of the values that followed the 21 nearest moments."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 2 * len(NEIGHBOURS)

    _age: DataAge = field(default_factory=DataAge, init=False)
    _values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), init=False)
    _forecasts: list[float] = field(default_factory=list, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._values = np.append(self._values[-(_MOMENTS + _LAGS - 1) :], value)
        followers = self._followers()
        nearest = [followers[:count] for count in NEIGHBOURS]
        self._forecasts = [median_of_sorted(sorted(values), len(values)) for values in nearest]
        self._forecasts += [sum(values) / len(values) for values in nearest]

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        return self._age.forecast(self._forecasts[-2], "analog", at_seconds, median=self._forecasts[1])

    def expert_forecasts(self, _at_seconds: float) -> Sequence[float]:
        """Return the median of the nearest values for each number in ``NEIGHBOURS``, then the means."""
        self._age.require(1)
        return self._forecasts

    def _followers(self) -> list[float]:
        """Return the values after the nearest moments, nearest first.

        While fewer than three values are known, the only element is the newest value.
        """
        backwards = self._values[::-1]
        if len(backwards) <= _LAGS:
            return [float(backwards[0])]
        last, before, followers = backwards[1:-1], backwards[2:], backwards[:-_LAGS]
        distances = np.abs(last - backwards[0]) + _EARLIER_WEIGHT * np.abs(before - backwards[1])
        nearest: list[float] = followers[distances.argsort(kind="stable")[: NEIGHBOURS[-1]]].tolist()
        return nearest
