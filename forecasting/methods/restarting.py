"""The level since the last change: begins anew when several values in a row say that the level is another.

Deviations from the level, in typical misses and cut so that no single value proves a change, are added up to
either side; where they exceed what noise does, the level has changed when the sum last was zero (Page,
"Continuous inspection schemes", Biometrika 41, 1954: the cumulative sum test; its cut is Huber's). Between
changes the level is the median of a long window, which a forgetting forecaster can only have when it is slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.scale import Typical
from forecasting.learning.windows import SortedWindow, middle

_WINDOW = 51
_REACH = 3.0  # typical misses that one value counts at most: with what follows, three in a row are a change
_ALLOWANCE = 1.0  # typical misses to one side that add nothing
_PROOF = 5.0


@dataclass(slots=True)
class Side:
    """How much speaks for a level further to one side, and for how many values already."""

    proof: float = 0.0
    values: int = 0

    def note(self, deviation: float) -> bool:
        """Take in how far a value lies to this side, and tell whether the level has changed."""
        self.proof = max(0.0, self.proof + deviation - _ALLOWANCE)
        self.values = self.values + 1 if self.proof else 0
        return self.proof > _PROOF


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the median of the values since the last change, at most 51; as mean, their mean."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = True
    EXPERT_FORECASTS: ClassVar[int] = 2

    _age: DataAge = field(default_factory=DataAge, init=False)
    _window: SortedWindow = field(default_factory=lambda: SortedWindow(_WINDOW), init=False)
    _typical: Typical = field(default_factory=Typical, init=False)
    _sides: list[Side] = field(default_factory=lambda: [Side(), Side()], init=False)  # above, below

    def update(self, time_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        changed_for = self._judge(value) if self._age.n > 1 else 0
        self._window.add(float(value))
        if changed_for:
            self._window.let_go(len(self._window) - changed_for)
            self._sides = [Side(), Side()]

    def forecast(self, at_seconds: float) -> ValueForecast:
        median, mean = self.expert_forecasts(at_seconds)
        return self._age.forecast(mean, "restarting", at_seconds, median=median)

    def expert_forecasts(self, _at_seconds: float) -> Sequence[float]:
        """The median and the mean."""
        self._age.require(1)
        window = self._window
        return middle(window.ordered, len(window)), sum(window.ordered) / len(window)

    def _judge(self, value: float) -> int:
        """Return how many values belong to a new level, *value* included; 0 if it is the old one."""
        level = middle(self._window.ordered, len(self._window))
        deviation = (value - level) / self._typical.unit(level)
        self._typical.add(value - level, level)
        deviation = max(-_REACH, min(_REACH, deviation))
        for side, outwards in zip(self._sides, (deviation, -deviation), strict=True):
            if side.note(outwards):
                return side.values
        return 0
