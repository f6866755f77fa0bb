"""A level and a damped trend: for series that rise or fall for a while.

Holt's method with a trend that dies away (Gardner, McKenzie, "Forecasting trends in time series", Management
Science 31, 1985), which is the recursion of the innovations model A,Ad,N, so what ``ets`` fits. Here several
smoothers run side by side, and the one that has missed least of late speaks, so nothing is ever fitted. As in
``forecasting.learning.levels`` an error counts for no more than what is at the edge of what is usual (Gelper,
Fried, Croux, "Robust forecasting with exponential and Holt-Winters smoothing", J. of Forecasting 29, 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.cadence import Cadence
from forecasting.learning.scale import Typical

GAINS = ((0.1, 0.005), (0.3, 0.02), (0.5, 0.1))  # of an error, for the level and for the trend
DAMPING = 0.95  # what is left of a trend after a step
_KEPT = 0.98  # of old losses at each value


@dataclass(slots=True)
class Trends:
    """Smoothers with a damped trend, one for each of ``GAINS``. Steps are gaps between values."""

    REACH: ClassVar[float] = 1.2  # typical misses

    _levels: list[float] = field(default_factory=list, init=False)
    _trends: list[float] = field(default_factory=lambda: [0.0] * len(GAINS), init=False)
    _losses: list[float] = field(default_factory=lambda: [0.0] * len(GAINS), init=False)
    _typical_miss: Typical = field(default_factory=Typical, init=False)

    def update(self, value: float) -> None:
        """Go on by one value."""
        if not self._levels:
            self._levels = [value] * len(GAINS)
            return
        expected = self.all_expected(1.0)
        errors = [value - each for each in expected]
        self._typical_miss.add(errors[self._best()])
        self._losses = [_KEPT * loss + abs(error) for loss, error in zip(self._losses, errors, strict=True)]
        reach = self.REACH * self._typical_miss.size
        errors = [min(max(error, -reach), reach) for error in errors]
        self._levels = [
            each + gain * error for each, (gain, _), error in zip(expected, GAINS, errors, strict=True)
        ]
        self._trends = [
            DAMPING * trend + gain * error
            for trend, (_, gain), error in zip(self._trends, GAINS, errors, strict=True)
        ]

    def expected(self, steps: float) -> float:
        """Return what the best expects *steps*, at least one, after the newest value."""
        return self.all_expected(steps)[self._best()]

    def all_expected(self, steps: float) -> list[float]:
        """Return what each smoother expects, in the order of ``GAINS``."""
        part = DAMPING if steps <= 1.0 else DAMPING * (1.0 - DAMPING**steps) / (1.0 - DAMPING)
        return [level + part * trend for level, trend in zip(self._levels, self._trends, strict=True)]

    def _best(self) -> int:
        return self._losses.index(min(self._losses))


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts where the level is when its trend has gone on, ever slower, until the time asked about."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    USES_TIMES: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 1

    _age: DataAge = field(default_factory=DataAge, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _trends: Trends = field(default_factory=Trends, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._cadence.note(time_seconds)
        self._trends.update(float(value))

    def forecast(self, at_seconds: float) -> ValueForecast:
        (expected,) = self.expert_forecasts(at_seconds)
        return self._age.forecast(expected, "local_linear_trend", at_seconds)

    def expert_forecasts(self, at_seconds: float) -> tuple[float]:
        """Return the one number it has: its mean is its median."""
        self._age.require(1)
        return (self._trends.expected(max(self._cadence.ahead(at_seconds), 1.0)),)
