"""The last values of a series, with weights that fall the longer a value has been known.

How long a value stays representative differs by user and by burst. So weights fall as a power of the age,
which has no scale of time (Anderson, Schooler, "Reflections of the environment in memory", Psychological
Science 2, 1991). The age is a product of two: the rank, 1 for the value known last, and the time since the
value became known, in which a pause between two bursts shows.

When a run starts, the known runs are those that have ended, and of runs that started together the short ones
end first. So a run may count up to twice: by the share of the time since its start for which it ran. A run
that is seen less often has to count more (Horvitz, Thompson, "A generalization of sampling without
replacement from a finite universe", JASA 47, 1952).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_LEAST_AGE_SECONDS = 10.0  # added to ages: of values a few seconds old none is much newer
_LONGEST_SECONDS = 1e12  # of ages and runs: sums of longer ones might not be finite
_LONGEST = 150
_LOG_RANKS: Numbers = np.log(np.arange(_LONGEST, 0, -1.0))  # of the oldest value first


class WeightedValues(NamedTuple):
    """Values in ascending order, rows of their weights, and the same rows with more weight on long runs."""

    values: Numbers
    by_age: Numbers
    longer: Numbers


@dataclass(slots=True)
class FadingValues:
    """The last *length* values (at most 150), when their runs started, and when they became known."""

    length: int = _LONGEST
    _recent: Numbers = field(default_factory=lambda: np.zeros((3, 0)), init=False)  # newest last

    def __len__(self) -> int:
        return int(self._recent.shape[1])

    def add(self, time_seconds: float, known_at_seconds: float, value: float) -> None:
        newest = np.array([[time_seconds], [known_at_seconds], [value]])
        self._recent = np.concatenate([self._recent[:, 1 - self.length :], newest], axis=1)

    def weighted(self, at_seconds: float, powers: Numbers) -> WeightedValues:
        """Return the values and a row of weights for each pair of *powers*: of the rank, of the time."""
        started, known, values = self._recent
        since_known = np.clip(at_seconds - known, 0.0, _LONGEST_SECONDS) + _LEAST_AGE_SECONDS
        running = np.clip(known - started, 0.0, _LONGEST_SECONDS)
        order = values.argsort(kind="stable")
        logs = np.stack([_LOG_RANKS[_LONGEST - len(values) :], np.log(since_known)])[:, order]
        by_age = np.exp(-powers @ logs)
        longer = by_age * (1.0 + (running / (running + since_known))[order])
        return WeightedValues(values[order], by_age, longer)
