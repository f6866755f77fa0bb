"""Medians in which a value weighs less the longer it has been known: for runs that overlap.

There is a median for each pair of powers by which weights fall (``forecasting.learning.fading``), and one in
which long runs count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forecasting.base import DataAge, ForecastMethod, ValueForecast
from forecasting.learning.fading import FadingValues
from forecasting.memo import Memo

Numbers = NDArray[np.float64]

# of each median: the power of the rank, and of the time since the value became known
_POWERS: Numbers = np.array(
    [
        (0.5, 0.25),
        (0.5, 0.5),
        (0.25, 0.25),
        (0.25, 0.5),
        (0.75, 0.25),
        (1.0, 0.5),
        (0.75, 0.0),
        (1.0, 0.0),
        (1.5, 0.0),
        (0.0, 0.5),
        (0.0, 1.0),
        (0.0, 1.5),
    ]
)
_LENGTH = 100  # values; more values make the medians slower after a change
_ROUNDING = 1.0 - 1e-12


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the first of its medians."""

    VERSION: ClassVar[int] = 2
    EXPERT: ClassVar[bool] = False  # blend uses it where runs overlap
    EXPERT_FORECASTS: ClassVar[int] = 2 * len(_POWERS)
    USES_TIMES: ClassVar[bool] = True

    _age: DataAge = field(default_factory=DataAge, init=False)
    _recent: FadingValues = field(default_factory=lambda: FadingValues(_LENGTH), init=False)
    _memo: Memo[list[float]] = field(default_factory=Memo, init=False, compare=False)

    def update(self, time_seconds: float, value: float) -> None:
        self.learn(time_seconds, time_seconds, value)

    def learn(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._memo.clear()
        self._recent.add(time_seconds, known_at_seconds, value)

    def forecast(self, at_seconds: float) -> ValueForecast:
        median = self.expert_forecasts(at_seconds)[0]
        return self._age.forecast(median, "fading_median", at_seconds)

    def expert_forecasts(self, at_seconds: float) -> Sequence[float]:
        """Return the medians by all ``_POWERS``, first those that let long runs count more."""
        cached = self._memo.get(at_seconds)
        if cached is not None:
            return cached
        self._age.require(1)
        ascending, by_age, longer = self._recent.weighted(at_seconds, _POWERS)
        medians = _medians(ascending, np.concatenate([longer, by_age]))
        return self._memo.keep(at_seconds, medians.tolist())


def _medians(ascending: Numbers, weights: Numbers) -> Numbers:
    """Return for each row of *weights* the least number with half of the weight at or below it."""
    sums = weights.cumsum(axis=1)
    medians: Numbers = ascending[(sums < 0.5 * _ROUNDING * sums[:, -1:]).sum(axis=1)]
    return medians
