"""A level and a damped trend: for series that rise or fall for a while.

The method is Holt's method with a damped trend (Gardner, McKenzie, "Forecasting trends in time series",
Management Science 31, 1985). Its recursion is the recursion of the innovations model A,Ad,N, which ``ets``
fits. Here several smoothers run side by side and the smoother with the least recent loss is used, so nothing
is fitted. As in ``forecasting.learning.levels`` an error is limited to the edge of the usual errors (Gelper,
Fried, Croux, "Robust forecasting with exponential and Holt-Winters smoothing", J. of Forecasting 29, 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.cadence import Cadence
from forecasting.learning.scale import TypicalSize

GAINS = ((0.1, 0.005), (0.3, 0.02), (0.5, 0.1))  # of an error, for the level and for the trend
DAMPING = 0.95  # factor of a trend at each step
_LOSS_DECAY = 0.98  # factor of old losses at each value


@dataclass(slots=True)
class Trends:
    """Smoothers with a damped trend, one for each of ``GAINS``. A step is a typical gap between values."""

    REACH: ClassVar[float] = 1.2  # typical errors

    _levels: list[float] = field(default_factory=list, init=False)
    _trends: list[float] = field(default_factory=lambda: [0.0] * len(GAINS), init=False)
    _losses: list[float] = field(default_factory=lambda: [0.0] * len(GAINS), init=False)
    _typical_error: TypicalSize = field(default_factory=TypicalSize, init=False)

    def update(self, value: float) -> None:
        """Learn the next *value*."""
        if not self._levels:
            self._levels = [value] * len(GAINS)
            return
        expected = self.all_expected(1.0)
        errors = [value - each for each in expected]
        self._typical_error.add(errors[self._best()])
        self._losses = [
            _LOSS_DECAY * loss + abs(error) for loss, error in zip(self._losses, errors, strict=True)
        ]
        reach = self.REACH * self._typical_error.size
        errors = [min(max(error, -reach), reach) for error in errors]
        self._levels = [
            each + gain * error for each, (gain, _), error in zip(expected, GAINS, errors, strict=True)
        ]
        self._trends = [
            DAMPING * trend + gain * error
            for trend, (_, gain), error in zip(self._trends, GAINS, errors, strict=True)
        ]

    def expected(self, steps: float) -> float:
        """Return the forecast of the best smoother for *steps* (at least 1) after the newest value."""
        return self.all_expected(steps)[self._best()]

    def all_expected(self, steps: float) -> list[float]:
        """Return each smoother's forecast for *steps* after the newest value, in the order of ``GAINS``."""
        part = DAMPING if steps <= 1.0 else DAMPING * (1.0 - DAMPING**steps) / (1.0 - DAMPING)
        return [level + part * trend for level, trend in zip(self._levels, self._trends, strict=True)]

    def _best(self) -> int:
        return self._losses.index(min(self._losses))


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the level at the requested time if the damped trend continues."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    USES_TIMES: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 1

    _age: DataAge = field(default_factory=DataAge, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _trends: Trends = field(default_factory=Trends, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._cadence.add(time_seconds)
        self._trends.update(float(value))

    def forecast(self, at_seconds: float) -> ValueForecast:
        (expected,) = self.expert_forecasts(at_seconds)
        return self._age.forecast(expected, "local_linear_trend", at_seconds)

    def expert_forecasts(self, at_seconds: float) -> tuple[float]:
        """Return the only forecast, which is both median and mean."""
        self._age.require(1)
        return (self._trends.expected(max(self._cadence.ahead(at_seconds), 1.0)),)
