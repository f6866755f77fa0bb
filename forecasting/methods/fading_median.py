"""A robust level for runs that overlap: the middle one of two medians and the last value.

Of the last 300 values, one median weighs a value less the longer it has been known
(``forecasting.learning.fading``) and so follows changes; the other one weighs all alike, and so is steady. If
the last value lies between them, the series may be on its way from one to the other. ``blend`` also uses the
mean of the values with the fading weights, which after a shift of level is too slow to be a forecast alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.fading import FadingValues

_ROUNDING = 1.0 - 1e-12


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the middle one of both medians and the last value."""

    VERSION: ClassVar[int] = 3
    EXPERT: ClassVar[bool] = False  # blend uses it where runs overlap
    USES_TIMES: ClassVar[bool] = True

    recent: FadingValues = field(default_factory=FadingValues, init=False)
    _age: DataAge = field(default_factory=DataAge, init=False)
    _last_value: float = field(default=0.0, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self.learn(time_seconds, time_seconds, value)

    def learn(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self.recent.add(known_at_seconds, value)
        self._last_value = float(value)

    def forecast(self, at_seconds: float) -> ValueForecast:
        return self._age.forecast(self.expert_forecasts(at_seconds)[0], "fading_median", at_seconds)

    def expert_forecasts(self, at_seconds: float) -> tuple[float, float]:
        """Return the forecast, which is a median, and the fading mean."""
        self._age.require(1)
        ascending, weights, _ = self.recent.weighted(at_seconds)
        sums = weights.cumsum()
        total = float(sums[-1])
        fading = float(ascending[sums.searchsorted(0.5 * _ROUNDING * total)])
        steady = float(ascending[(len(ascending) - 1) // 2])
        return sorted((fading, steady, self._last_value))[1], float(weights @ ascending) / total
