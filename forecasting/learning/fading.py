"""The last values of a series, with weights that fall the longer a value has been known.

How long a value stays representative differs by user and by burst. So weights fall as a power of the age,
which has no scale of time (Anderson, Schooler, "Reflections of the environment in memory", Psychological
Science 2, 1991). The age is a product of two: the rank, 1 for the value known last, and the time since the
value became known, in which a pause between two bursts shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.memo import Memo

Numbers = NDArray[np.float64]

_LENGTH = 300  # values
_LEAST_AGE_SECONDS = 10.0  # added to ages: of values a few seconds old none is much newer
_LONGEST_SECONDS = 1e12  # of ages: weights of older values might be 0
_RANKS: Numbers = np.arange(_LENGTH, 0, -1.0)  # of the oldest value first
_BY_RANK: Numbers = _RANKS**-0.5
_SLOWLY_BY_RANK: Numbers = _RANKS**-0.25


class WeightedValues(NamedTuple):
    """Values in ascending order, and two weights of each.

    Both weights fall with the fourth root of the time since a value became known; *quick* falls with the
    square root of the rank as well, and *slow* with its fourth root.
    """

    values: Numbers
    quick: Numbers
    slow: Numbers


@dataclass(slots=True)
class FadingValues:
    """The last 300 values, and when they became known."""

    _recent: Numbers = field(default_factory=lambda: np.zeros((2, 0)), init=False)  # newest last
    _memo: Memo[WeightedValues] = field(default_factory=Memo, init=False, compare=False)

    def __len__(self) -> int:
        return len(self._recent[0])

    def add(self, known_at_seconds: float, value: float) -> None:
        newest = ((known_at_seconds,), (value,))
        self._recent = np.concatenate((self._recent[:, 1 - _LENGTH :], newest), axis=1)
        self._memo.clear()

    def weighted(self, at_seconds: float) -> WeightedValues:
        """Return the values with their weights at *at_seconds*."""
        cached = self._memo.get(at_seconds)
        if cached is not None:
            return cached
        known_at, values = self._recent
        first = _LENGTH - len(values)
        since_known = np.minimum(np.maximum(at_seconds - known_at, 0.0), _LONGEST_SECONDS)
        by_time = 1.0 / np.sqrt(np.sqrt(since_known + _LEAST_AGE_SECONDS))
        order = values.argsort(kind="stable")
        quick, slow = by_time * _BY_RANK[first:], by_time * _SLOWLY_BY_RANK[first:]
        return self._memo.keep(at_seconds, WeightedValues(values[order], quick[order], slow[order]))
