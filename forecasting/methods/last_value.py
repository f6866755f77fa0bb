"""The last value: the baseline of every other method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the newest value."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = False  # the first expert forecast of nws

    _age: DataAge = field(default_factory=DataAge, init=False)
    _value: float = field(default=0.0, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._value = float(value)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        return self._age.forecast(self._value, "last_value", at_seconds)
