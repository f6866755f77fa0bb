"""Medians in which a value weighs less the longer it has been known: for runs that overlap.

How long a value stays representative differs by user and by burst. So weights fall as a power of the age,
which has no scale of time (Anderson, Schooler, "Reflections of the environment in memory", Psychological
Science 2, 1991). The age is a product of two: the rank, 1 for the value known last, and the time since the
value became known, in which a pause between two bursts shows. There is a median for each pair of powers.

When a run starts, the known runs are those that have ended, and of runs that started together the short ones
end first. So there are the same medians with other weights, in which a run counts up to twice: by the share
of the time since its start for which it ran. A run that is seen less often has to count more (Horvitz,
Thompson, "A generalization of sampling without replacement from a finite universe", JASA 47, 1952).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forecasting.base import DataAge, ForecastMethod, ValueForecast

Numbers = NDArray[np.float64]

_LENGTH = 100  # values; more values make the medians slower after a change
_LEAST_AGE_SECONDS = 10.0  # added to ages: of values a few seconds old none is much newer
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
_LOG_RANKS: Numbers = np.log(np.arange(_LENGTH, 0, -1.0))  # of the oldest value first
_STARTED, _KNOWN, _VALUE = range(3)  # the rows of recent
_ROUNDING = 1.0 - 1e-12


@dataclass(slots=True)
class Method(ForecastMethod):
    """Forecasts the median by the first weights."""

    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = False  # blend uses it where runs overlap
    EXPERT_FORECASTS: ClassVar[int] = 2 * len(_POWERS)
    USES_TIMES: ClassVar[bool] = True

    _age: DataAge = field(default_factory=DataAge, init=False)
    _recent: Numbers = field(default_factory=lambda: np.zeros((3, _LENGTH)), init=False)  # newest last

    def update(self, time_seconds: float, value: float) -> None:
        self.learn(time_seconds, time_seconds, value)

    def learn(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        self._age.add(time_seconds, value)
        self._recent[:, :-1] = self._recent[:, 1:]
        self._recent[:, -1] = time_seconds, known_at_seconds, value

    def forecast(self, at_seconds: float) -> ValueForecast:
        self._age.require(1)
        median = float(_medians(*self._weighted(at_seconds, _POWERS[:1]))[0])
        return self._age.forecast(median, "fading_median", at_seconds)

    def expert_forecasts(self, at_seconds: float) -> Sequence[float]:
        """Return the medians by all ``_POWERS``, first those that let long runs count more."""
        self._age.require(1)
        medians: list[float] = _medians(*self._weighted(at_seconds, _POWERS)).tolist()
        return medians

    def _weighted(self, at_seconds: float, powers: Numbers) -> tuple[Numbers, Numbers]:
        """Return the last values in ascending order, and two rows of their weights for each of *powers*."""
        first = max(_LENGTH - self._age.n, 0)
        started, known, values = self._recent[:, first:]
        since_known = np.maximum(at_seconds - known, 0.0) + _LEAST_AGE_SECONDS
        running = np.maximum(known - started, 0.0)
        logs = np.stack([_LOG_RANKS[first:], np.log(since_known)])
        order = np.argsort(values, kind="stable")
        by_age = np.exp(-powers @ logs[:, order])
        share = running / (running + since_known)
        return values[order], np.concatenate([by_age * (1.0 + share[order]), by_age])


def _medians(ascending: Numbers, weights: Numbers) -> Numbers:
    """Return for each row of *weights* the least number with half of the weight at or below it."""
    sums = weights.cumsum(axis=1)
    medians: Numbers = ascending[(sums < 0.5 * _ROUNDING * sums[:, -1:]).sum(axis=1)]
    return medians
