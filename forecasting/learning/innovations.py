"""The innovation in the newest value of a series: the value minus the prediction by the earlier values.

A long run of a probe that always takes long carries no information. A probe that took longer than its own
history predicts indicates the present state of the grid, which affects an application as well. Innovations
are differences of logarithms while all values of a series are positive, and differences of values otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.learning.windows import SortedWindow, median_of_sorted

_LONG = 31
_SHORT = 5
_GAINS = (0.5, 0.1)
_ERROR_DECAY = 0.98
_NO_ERROR = 1e-9  # added to all errors: equal weights until there are errors, negligible later
_LARGEST_LOG = 690.0  # exp of it is below 1e300

Numbers = NDArray[np.float64]


class Innovation(NamedTuple):
    """A value minus its expectation, on the scale of the series.

    Attributes:
        short_term: the expectation is a mean of simple forecasts with short and long memories.
        long_term: the expectation is the median of the last 31 values.
    """

    short_term: float
    long_term: float


@dataclass(slots=True)
class InnovationTracker:
    """Computes the innovations of a series. The short-term expectation is a weighted mean of four forecasts.

    Each forecast has the inverse square of its recent errors as weight.

    Source: Bates, Granger, "The combination of forecasts", Operational Research Quarterly 20 (1969).
    """

    is_logarithmic: bool = field(default=True, init=False)
    _window: SortedWindow = field(default_factory=lambda: SortedWindow(_LONG), init=False)
    _smoothed: list[float] = field(default_factory=list, init=False)
    _errors: list[float] = field(default_factory=lambda: [_NO_ERROR] * 4, init=False)

    def update(self, value: float) -> Innovation:
        """Learn *value* and return its innovation. The first value <= 0 makes the scale linear."""
        if not self.fits_scale(value):
            self._leave_logarithms()
        scaled = self.scaled(value)
        if not self._smoothed:
            self._window.add(value)
            self._smoothed = [scaled] * len(_GAINS)
            return Innovation(0.0, 0.0)
        means = self._means()
        innovation = Innovation(scaled - self._weighted(means), scaled - means[0])
        self._errors = [
            _ERROR_DECAY * error + abs(scaled - mean) + _NO_ERROR
            for error, mean in zip(self._errors, means, strict=True)
        ]
        self._window.add(value)
        self._smoothed = [
            level + gain * (scaled - level) for level, gain in zip(self._smoothed, _GAINS, strict=True)
        ]
        return innovation

    def fits_scale(self, value: float) -> bool:
        """Return whether *value* fits the scale of the series: a logarithmic scale needs a positive value."""
        return value > 0.0 or not self.is_logarithmic

    def scaled(self, value: float) -> float:
        """Return *value* on the scale of the series: its logarithm while all values are positive."""
        return log(value) if self.is_logarithmic else value

    def shifted(self, value: float, distances: Numbers) -> Numbers:
        """Return the values at *distances* above *value* on the scale of the series; inf on overflow."""
        with np.errstate(over="ignore"):
            if self.is_logarithmic:
                return value * np.exp(np.minimum(distances, _LARGEST_LOG))
            return value + distances

    def distance(self, value: float, origin: float) -> float:
        """Return how far *value* is above *origin* on the series' scale; 0 if a logarithm is undefined."""
        if not self.is_logarithmic:
            return value - origin
        return log(value) - log(origin) if value > 0.0 < origin else 0.0

    def median(self) -> float:
        """Return the median of the last 31 values; at least one value must be known."""
        return median_of_sorted(self._window.ordered, len(self._window))

    def _means(self) -> list[float]:
        short = self._window.ordered_last(_SHORT)
        short_median = median_of_sorted(short, len(short))
        return [self.scaled(self.median()), self.scaled(short_median), *self._smoothed]

    def _weighted(self, means: list[float]) -> float:
        least = min(self._errors)
        weights = [(least / error) ** 2 for error in self._errors]
        return sum(weight * mean for weight, mean in zip(weights, means, strict=True)) / sum(weights)

    def _leave_logarithms(self) -> None:
        self.is_logarithmic = False
        self._smoothed = [exp(level) for level in self._smoothed]
        self._errors = [_NO_ERROR] * len(self._errors)
