"""The level since the last change point, which a cumulative sum test detects.

Deviations from the level are measured in typical errors, and limited so that no single value proves a change.
They are added up for each side, above and below. If a sum exceeds what noise can reach, the level changed
when the sum was last zero (Page, "Continuous inspection schemes", Biometrika 41, 1954; the limit is Huber's).
Between change points the level is the median of a long window: as stable as the level of a slow smoother, but
without the smoother's delay after a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.scale import TypicalSize
from forecasting.learning.windows import SortedWindow, median_of_sorted

_WINDOW = 51
_REACH = 3.0  # typical errors: the limit of one value's deviation, so that three in a row are a change
_ALLOWANCE = 1.0  # typical errors to one side that add nothing
_THRESHOLD = 5.0


@dataclass(slots=True)
class Side:
    """The evidence that the level has moved to one side; it comes from the last *values* values."""

    evidence: float = 0.0
    values: int = 0

    def add(self, deviation: float) -> bool:
        """Add the *deviation* of a value, positive on this side; return whether the level has changed."""
        self.evidence = max(0.0, self.evidence + deviation - _ALLOWANCE)
        self.values = self.values + 1 if self.evidence else 0
        return self.evidence > _THRESHOLD


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the median and the mean of the values since the last change point, at most 51."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 2

    _age: DataAge = field(default_factory=DataAge, init=False)
    _window: SortedWindow = field(default_factory=lambda: SortedWindow(_WINDOW), init=False)
    _typical: TypicalSize = field(default_factory=TypicalSize, init=False)
    _sides: list[Side] = field(default_factory=lambda: [Side(), Side()], init=False)  # above, below

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        values_since_change = self._values_since_change(value) if self._age.n > 1 else 0
        self._window.add(float(value))
        if values_since_change:
            self._window.drop_oldest(len(self._window) - values_since_change)
            self._sides = [Side(), Side()]

    def forecast(self, at_seconds: float) -> ValueForecast:
        median, mean = self.expert_forecasts(at_seconds)
        return self._age.forecast(mean, "restarting", at_seconds, median=median)

    def expert_forecasts(self, _at_seconds: float) -> Sequence[float]:
        """Return the median and the mean."""
        self._age.require(1)
        window = self._window
        return median_of_sorted(window.ordered, len(window)), sum(window.ordered) / len(window)

    def _values_since_change(self, value: float) -> int:
        """Return how many values, *value* included, belong to a new level; 0 if the level is unchanged."""
        level = median_of_sorted(self._window.ordered, len(self._window))
        deviation = (value - level) / self._typical.unit(level)
        self._typical.add(value - level, level)
        deviation = max(-_REACH, min(_REACH, deviation))
        for side, outwards in zip(self._sides, (deviation, -deviation), strict=True):
            if side.add(outwards):
                return side.values
        return 0
