"""How long jobs of one queue wait: the bound that 95 of 100 keep to with confidence .95, and what is usual.

The bound is that of the binomial method, see ``forecasting.queues.binomial``; it is there once its least
history is known, 59 waits. The mean and the median are of the last so many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.windows import middle
from forecasting.queues.binomial import QUANTILE, Waits, least_history


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the mean and the median of the last waits, and as its one quantile the bound of the next."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = False

    _age: DataAge = field(default_factory=DataAge, init=False)
    _waits: Waits = field(default_factory=Waits, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._waits.add(time_seconds, float(value), self._waits.bound(time_seconds))

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        bound = self._waits.bound(at_seconds)
        last = self._waits.history.ordered_last(least_history())
        return ValueForecast(
            mean=sum(last) / len(last),
            median=middle(last, len(last)),
            method="queue_wait",
            n=self._age.n,
            age_seconds=max(0.0, at_seconds - self._age.newest_seconds),
            quantiles={} if bound is None else {QUANTILE: bound},
        )
