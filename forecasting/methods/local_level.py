"""A wandering level with noise: exponential smoothing with the gain that has fitted best so far.

Exponential smoothing is the optimal forecast of a random walk plus noise (Muth, "Optimal properties of
exponentially weighted forecasts", JASA 55, 1960). With normal noise, and the first value as the initial
level, the gain of maximum likelihood is the gain with the least sum of squared one-step errors. A smoother
for each of 20 gains keeps this sum up to date, so no fit is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast

GAINS = tuple(step / 20 for step in range(1, 21))


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the level of the smoother with the least sum of squared errors so far."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = True

    _age: DataAge = field(default_factory=DataAge, init=False)
    _levels: list[float] = field(default_factory=lambda: [0.0] * len(GAINS), init=False)
    _squared_errors: list[float] = field(default_factory=lambda: [0.0] * len(GAINS), init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        if self._age.n == 1:
            self._levels = [float(value)] * len(GAINS)
            return
        errors = [value - level for level in self._levels]
        self._squared_errors = [
            total + error * error for total, error in zip(self._squared_errors, errors, strict=True)
        ]
        self._levels = [
            level + gain * error for level, gain, error in zip(self._levels, GAINS, errors, strict=True)
        ]

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        best = self._squared_errors.index(min(self._squared_errors))
        return self._age.forecast(self._levels[best], "local_level", at_seconds)
