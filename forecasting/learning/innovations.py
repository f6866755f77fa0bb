"""What the newest value of a series says that was not expected of it.

That a probe took long is no news where it always does; that it took longer than its own history let expect
says something of the state of things now, which an application will meet as well. Changes are measured as
ratios, in logarithms, as long as a series has shown nothing but positive values, and as differences
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.learning.windows import SortedWindow, middle

_LONG = 31
_SHORT = 5
_GAINS = (0.5, 0.1)
_KEPT_MISSES = 0.98
_NO_MISS = 1e-9  # equal weights where nothing was missed yet; of no account otherwise
_LARGEST_LOG = 690.0  # exp of it is below 1e300

Numbers = NDArray[np.float64]


class News(NamedTuple):
    """A value less what was expected: *of the day* by short memory and long, *of the month* by the median of
    the last 31 values alone."""

    of_the_day: float
    of_the_month: float


@dataclass(slots=True)
class Course:
    """A series, followed by four simple means that are weighed by the inverse square of their misses (Bates,
    Granger, "The combination of forecasts", Operational Research Quarterly 20, 1969)."""

    logarithmic: bool = field(default=True, init=False)
    _window: SortedWindow = field(default_factory=lambda: SortedWindow(_LONG), init=False)
    _smoothed: list[float] = field(default_factory=list, init=False)
    _misses: list[float] = field(default_factory=lambda: [_NO_MISS] * 4, init=False)

    def learn(self, value: float) -> News:
        """Take *value* in, and return what is new in it; in the measure that fits the series from now on."""
        if not self.fits(value):
            self._leave_logarithms()
        measured = self.measured(value)
        if not self._smoothed:
            self._window.add(value)
            self._smoothed = [measured] * len(_GAINS)
            return News(0.0, 0.0)
        expected = self._expected()
        news = News(measured - self._weighed(expected), measured - expected[0])
        self._misses = [
            _KEPT_MISSES * missed + abs(measured - one) + _NO_MISS
            for missed, one in zip(self._misses, expected, strict=True)
        ]
        self._window.add(value)
        self._smoothed = [
            level + gain * (measured - level) for level, gain in zip(self._smoothed, _GAINS, strict=True)
        ]
        return news

    def fits(self, value: float) -> bool:
        """Whether *value* leaves the measure of the series as it is."""
        return value > 0.0 or not self.logarithmic

    def measured(self, value: float) -> float:
        """*value* in the measure of the series."""
        return log(value) if self.logarithmic else value

    def moved(self, value: float, by: Numbers) -> Numbers:
        """What lies each of *by* higher than *value* in the measure of the series; inf beyond all numbers."""
        with np.errstate(over="ignore"):
            return value * np.exp(np.minimum(by, _LARGEST_LOG)) if self.logarithmic else value + by

    def distance(self, value: float, origin: float) -> float:
        """How far *value* lies above *origin* in the measure of the series; 0 where that has no answer."""
        if not self.logarithmic:
            return value - origin
        return log(value) - log(origin) if value > 0.0 < origin else 0.0

    def usual(self) -> float:
        """The median of the last 31 values, of which there must be one."""
        return middle(self._window.ordered, len(self._window))

    def _expected(self) -> list[float]:
        short = self._window.ordered_last(_SHORT)
        return [self.measured(self.usual()), self.measured(middle(short, len(short))), *self._smoothed]

    def _weighed(self, expected: list[float]) -> float:
        least = min(self._misses)
        weights = [(least / missed) ** 2 for missed in self._misses]
        return sum(weight * one for weight, one in zip(weights, expected, strict=True)) / sum(weights)

    def _leave_logarithms(self) -> None:
        self.logarithmic = False
        self._smoothed = [exp(level) for level in self._smoothed]
        self._misses = [_NO_MISS] * len(self._misses)
