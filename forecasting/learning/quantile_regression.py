"""A quantile as a weighted sum of signals, learned one value after another.

The loss is the pinball loss, whose slope depends only on whether the value was above the answer. So the
regression learns from a job as soon as the job's wait exceeds the bound, before the wait has ended. The steps
are those of AdaGrad (Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
optimization", JMLR 12, 2011): the more a weight has been moved, the less it moves. Each signal is centred and
scaled by its earlier values, so its unit does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

RATE = 0.0075
LEVEL_RATE = 0.05
_PRIOR_COUNT = 20.0  # observations: the weight of the initial standard deviation of 1
_FARTHEST = 5.0  # standard deviations: the limit of a signal
_MIN_SQUARES = 1e-2


@dataclass(slots=True)
class QuantileRegression:
    """A linear quantile regression: ``weights[0]`` is the level, each other weight belongs to a signal."""

    weights: Numbers
    _squares: Numbers  # sums of squared slopes
    _sums: Numbers  # of the signals
    _powers: Numbers
    _n: int = 0

    @classmethod
    def of(cls, signals: int) -> Self:
        """Return a new regression on *signals* signals; its answer is 0 until it learns."""
        size = 1 + signals
        return cls(np.zeros(size), np.full(size, _MIN_SQUARES), np.zeros(signals), np.zeros(signals))

    def observe(self, signals: Sequence[float]) -> None:
        """Add *signals* to the means and standard deviations by which signals are scaled."""
        numbers = np.array(signals)
        self._n += 1
        self._sums += numbers
        self._powers += numbers * numbers

    def scaled(self, signals: Sequence[float]) -> Numbers:
        """Return 1 (for the level), then the distance of each signal from its mean in standard deviations."""
        scaled = np.ones(len(self.weights))
        if not self._n:
            scaled[1:] = 0.0
            return scaled
        mean = self._sums / self._n
        variance = np.maximum(self._powers / self._n - mean * mean, 0.0)
        spread = np.sqrt((self._n * variance + _PRIOR_COUNT) / (self._n + _PRIOR_COUNT))
        scaled[1:] = np.clip((np.array(signals) - mean) / spread, -_FARTHEST, _FARTHEST)
        return scaled

    def answer(self, scaled: Numbers) -> float:
        return float(self.weights @ scaled)

    def learn(self, scaled: Numbers, slope: float) -> None:
        """Move the weights against the *slope* of the loss, given the signals as ``scaled`` returns them.

        The slope is 1 - p if the answer was at least the actual value, else -p, where p is the probability of
        the quantile.
        """
        slopes = slope * scaled
        self._squares += slopes * slopes
        steps = slopes / np.sqrt(self._squares)
        self.weights -= RATE * steps
        self.weights[0] -= (LEVEL_RATE - RATE) * steps[0]
