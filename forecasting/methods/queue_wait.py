"""The wait in one queue: mean, median, and a bound that holds for 95 % of the jobs with confidence 95 %.

The bound comes from the binomial method (``forecasting.queues.binomial``) and needs 59 known waits. The mean
and the median are of the last 59 waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.windows import median_of_sorted
from forecasting.queues.binomial import QUANTILE, WaitHistory, min_history


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the mean and the median of the last waits, and one quantile: the bound of the next wait."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = False

    _age: DataAge = field(default_factory=DataAge, init=False)
    _waits: WaitHistory = field(default_factory=WaitHistory, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._waits.add(time_seconds, float(value), self._waits.bound(time_seconds))

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        bound = self._waits.bound(at_seconds)
        last = self._waits.history.ordered_last(min_history())
        return ValueForecast(
            mean=sum(last) / len(last),
            median=median_of_sorted(last, len(last)),
            method="queue_wait",
            n=self._age.n,
            age_seconds=max(0.0, at_seconds - self._age.newest_seconds),
            quantiles={} if bound is None else {QUANTILE: bound},
        )
