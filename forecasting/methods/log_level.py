"""The level of the logarithm: for positive values whose scatter is relative to their size.

On the scale of logarithms a run that took three times as long is as far away as a run that took a third of
the time, so a few very long runs move the level little. The exponential of the level is a median. The mean of
skewed values is larger: if the logarithms have normal scatter of variance s^2, by the factor exp(s^2 / 2)
(Finney, "On the distribution of a variate whose logarithm is normally distributed", Supplement to the JRSS 7,
1941).

At the first value that is not positive, the method converts its levels and continues without logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import LARGEST_VALUE, DataAge, ForecastMethod, ValueForecast
from forecasting.learning.cadence import Cadence
from forecasting.learning.levels import MeanLevels, MedianLevels

_LARGEST_LOG = math.log(LARGEST_VALUE)
_SQUARED_ERROR = math.pi / 2.0  # the variance of a normal variable whose mean absolute value is 1
_MAX_ADDED = 1.0  # to the logarithm of the mean: a larger term means that values are not lognormal


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts like ``decaying``, but from logarithms while all values are positive."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    USES_TIMES: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 2

    _age: DataAge = field(default_factory=DataAge, init=False)
    _cadence: Cadence = field(default_factory=Cadence, init=False)
    _uses_logs: bool = field(default=True, init=False)
    _first_log: float = field(default=0.0, init=False)
    _first: float = field(default=0.0, init=False)
    _for_median: MedianLevels = field(default_factory=MedianLevels, init=False)
    _for_mean: MeanLevels = field(default_factory=MeanLevels, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        value = float(value)
        elapsed = self._cadence.add(time_seconds)
        if self._uses_logs and value <= 0.0:
            self._leave_logs()
        if self._uses_logs:
            value = self._logarithm(value)
        self._for_median.update(value, elapsed)
        self._for_mean.update(value, elapsed)

    def forecast(self, at_seconds: float) -> ValueForecast:
        mean, median = self.expert_forecasts(at_seconds)
        return self._age.forecast(mean, "log_level", at_seconds, median=median)

    def expert_forecasts(self, at_seconds: float) -> tuple[float, float]:
        """Return the mean and the median."""
        self._age.require(1)
        return self._expected(self._cadence.ahead(at_seconds))

    def _expected(self, elapsed: float) -> tuple[float, float]:
        """Return the mean and the median for *elapsed* gaps after the newest value."""
        median, mean = self._for_median.expected(elapsed), self._for_mean.expected(elapsed)
        if not self._uses_logs:
            return mean, median
        variance = _SQUARED_ERROR * self._for_mean.usual_error**2
        return self._value(mean + min(variance / 2.0, _MAX_ADDED)), self._value(median)

    def _logarithm(self, value: float) -> float:
        """Return the logarithm of the ratio of *value* to the first value; exactly 0 for constant values."""
        logarithm = math.log(value)
        if self._age.n == 1:
            self._first_log, self._first = logarithm, value
        return logarithm - self._first_log

    def _value(self, logarithm: float) -> float:
        if not logarithm:
            return self._first
        return math.exp(min(logarithm + self._first_log, _LARGEST_LOG))

    def _leave_logs(self) -> None:
        """Convert the levels from logarithms to values, and the errors by the slope of the exponential."""
        if self._age.n > 1:
            slope = self._value(self._for_median.expected(0.0))
            self._for_median.change_scale(self._value, slope)
            self._for_mean.change_scale(self._value, slope)
        self._uses_logs = False
