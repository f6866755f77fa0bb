"""The next value is the last one: the measure of every other method."""

from __future__ import annotations

from forecasting.base import Age, Forecast


class Method:
    """Forecasts the newest value."""

    def __init__(self) -> None:
        self._age = Age()
        self._value = 0.0

    def update(self, time_seconds: float, value: float) -> None:
        self._age.note(time_seconds, value)
        self._value = float(value)

    def forecast(self, at_seconds: float) -> Forecast:
        self._age.require(1)
        return self._age.forecast(self._value, "last_value", at_seconds)
