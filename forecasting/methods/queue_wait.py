"""The wait in one queue: mean, median, and a bound that holds for 95 % of the jobs with confidence 95 %.

The bound is that of ``forecasting.queues.bounds`` and needs 59 known waits. The values are all that is known
of the queue, so each one counts as an equal job that left the queue before the next one came. The mean and
the median are of the last 59 waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.windows import SortedWindow, median_of_sorted
from forecasting.queues.binomial import QUANTILE, min_history
from forecasting.queues.bounds import QueueBounds
from forecasting.queues.queue_state import QueuedJob


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the mean and the median of the last waits, and one quantile: the bound of the next wait."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False

    _age: DataAge = field(default_factory=DataAge, init=False)
    _last: SortedWindow = field(default_factory=lambda: SortedWindow(min_history()), init=False)
    _bounds: QueueBounds = field(default_factory=QueueBounds, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._last.add(float(value))
        job = QueuedJob(self._age.n, time_seconds)
        left_seconds = time_seconds + max(0.0, float(value))
        self._bounds.submit(job)
        self._bounds.start(job.number, left_seconds)
        self._bounds.end(job.number, left_seconds)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        bound = self._bounds.bound(QueuedJob(0, at_seconds))
        last = self._last.ordered
        return ValueForecast(
            mean=sum(last) / len(last),
            median=median_of_sorted(last, len(last)),
            method="queue_wait",
            n=self._age.n,
            age_seconds=max(0.0, at_seconds - self._age.newest_seconds),
            quantiles={} if bound is None else {QUANTILE: bound},
        )
