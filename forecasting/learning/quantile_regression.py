"""A quantile as a weighted sum of signals, learned one truth after another.

The loss is the pinball loss, whose slope only asks whether the truth was above the answer: so that a job has
waited for longer than it should teaches as soon as it has, though its wait is not known yet. The steps are
those of AdaGrad (Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
optimization", JMLR 12, 2011): the more a weight has been moved, the less it moves. Signals are centred and
scaled by what was seen of them before, so their units and a log's habits are of no account.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

RATE = 0.0075
RATE_OF_LEVEL = 0.05
_BELIEVED = 20.0  # a signal is taken to vary by 1 until so many are known
_FARTHEST = 5.0  # standard deviations; what is farther off counts as this
_LEAST_SQUARES = 1e-2


@dataclass(slots=True)
class QuantileRegression:
    """*weights* are of the level, which is first, and of each signal."""

    weights: Numbers
    _squares: Numbers  # sums of squared slopes
    _sums: Numbers  # of the signals
    _powers: Numbers
    _n: int = 0

    @classmethod
    def of(cls, signals: int) -> Self:
        """One that expects 0 whatever the *signals*, which are so many."""
        size = 1 + signals
        return cls(np.zeros(size), np.full(size, _LEAST_SQUARES), np.zeros(signals), np.zeros(signals))

    def see(self, signals: Sequence[float]) -> None:
        """Learn how large *signals* are and how they vary."""
        numbers = np.array(signals)
        self._n += 1
        self._sums += numbers
        self._powers += numbers * numbers

    def scaled(self, signals: Sequence[float]) -> Numbers:
        """One for the level, and each signal by how far off it is from what was usual."""
        found = np.ones(len(self.weights))
        if not self._n:
            found[1:] = 0.0
            return found
        mean = self._sums / self._n
        variance = np.maximum(self._powers / self._n - mean * mean, 0.0)
        spread = np.sqrt((self._n * variance + _BELIEVED) / (self._n + _BELIEVED))
        found[1:] = np.clip((np.array(signals) - mean) / spread, -_FARTHEST, _FARTHEST)
        return found

    def answer(self, scaled: Numbers) -> float:
        return float(self.weights @ scaled)

    def learn(self, scaled: Numbers, slope: float) -> None:
        """Move on by the *slope* of the loss: 1 - quantile if the answer was not too low, else - quantile."""
        slopes = slope * scaled
        self._squares += slopes * slopes
        steps = slopes / np.sqrt(self._squares)
        self.weights -= RATE * steps
        self.weights[0] -= (RATE_OF_LEVEL - RATE) * steps[0]
