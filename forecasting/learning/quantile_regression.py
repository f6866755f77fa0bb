"""A quantile as a weighted sum of signals, or as a function of their combinations, learned one by one.

The loss is the pinball loss, whose slope depends only on whether the value was above the answer. So the
regression learns from a job as soon as the job's wait exceeds the bound, before the wait has ended. The steps
are those of AdaGrad (Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
optimization", JMLR 12, 2011): the more a weight has been moved, the less it moves. Each signal is centred and
scaled by its earlier values, so its unit does not matter.

A weighted sum cannot tell that a long request matters only on a full machine. *Partitions* can: each divides
all jobs into cells by six random questions of the form "is this signal above this threshold?", and each cell
has a weight of its own. The sum over many partitions approximates a regression with a kernel, at the cost of
one weight for each partition (Rahimi, Recht, "Random features for large-scale kernel machines", NIPS 2007;
Geurts, Ernst, Wehenkel, "Extremely randomized trees", Machine Learning 63, 2006; online, with the pinball
loss: Kivinen, Smola, Williamson, "Online learning with kernels", IEEE Transactions on Signal Processing 52,
2004). The questions are drawn before any value is known, so nothing is fitted again and no value is kept.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indexes = NDArray[np.int64]

RATE = 0.0075
LEVEL_RATE = 0.05
CELL_RATE = 0.01
QUESTIONS = 6
_SEED = 1
_PRIOR_COUNT = 20.0  # observations: the weight of the initial standard deviation of 1
_FARTHEST = 5.0  # standard deviations: the limit of a signal
_MIN_SQUARES = 1e-2
_MIN_CELL_SQUARES = 0.03
_POWERS = 1 << np.arange(QUESTIONS)


@dataclass(slots=True)
class SignalScale:
    """The means and standard deviations of signals."""

    _sums: Numbers
    _powers: Numbers
    _mean: Numbers
    _spread: Numbers
    _n: int = 0

    @classmethod
    def of(cls, signals: int) -> Self:
        return cls(np.zeros(signals), np.zeros(signals), np.zeros(signals), np.ones(signals))

    def observe(self, signals: Sequence[float]) -> None:
        """Add *signals* to the means and standard deviations."""
        numbers = np.array(signals)
        self._n += 1
        self._sums += numbers
        self._powers += numbers * numbers
        self._mean = self._sums / self._n
        variance = np.maximum(self._powers / self._n - self._mean * self._mean, 0.0)
        self._spread = np.sqrt((self._n * variance + _PRIOR_COUNT) / (self._n + _PRIOR_COUNT))

    def scaled(self, signals: Sequence[float]) -> Numbers:
        """Return 1 (for the level), then the distance of each signal from its mean in standard deviations.

        Before the first ``observe`` all distances are 0.
        """
        scaled = np.array([1.0, *signals])
        if self._n:
            distances = (scaled[1:] - self._mean) / self._spread
            scaled[1:] = np.minimum(np.maximum(distances, -_FARTHEST), _FARTHEST)
        else:
            scaled[1:] = 0.0
        return scaled


@dataclass(slots=True)
class QuantileRegression:
    """A quantile regression on scaled signals.

    ``weights[0]`` is the level, each other weight belongs to a signal. The questions of a partition are a row
    of ``_asked``, the places of signals, and a row of ``_thresholds``.
    """

    weights: Numbers
    _squares: Numbers  # sums of squared slopes
    _asked: Indexes
    _thresholds: Numbers
    _first_cells: Indexes  # of the partitions
    _cells: Numbers
    _cell_squares: Numbers

    @classmethod
    def of(cls, signals: int, partitions: int = 0) -> Self:
        """Return a new regression on the first *signals* signals; its answer is 0 until it learns."""
        draw, size = random.Random(_SEED), 1 + signals  # noqa: S311 - questions, not secrets
        questions = [draw.sample(range(1, size), QUESTIONS) for _ in range(partitions)]
        thresholds = [[draw.gauss(0.0, 1.0) for _ in range(QUESTIONS)] for _ in range(partitions)]
        cells = partitions << QUESTIONS
        return cls(
            np.zeros(size),
            np.full(size, _MIN_SQUARES),
            np.array(questions, dtype=np.int64),
            np.array(thresholds),
            np.arange(partitions) << QUESTIONS,
            np.zeros(cells),
            np.full(cells, _MIN_CELL_SQUARES),
        )

    def answer(self, scaled: Numbers) -> float:
        answer = float(self.weights @ scaled[: len(self.weights)])
        return answer + float(self._cells[self._cells_of(scaled)].sum()) if len(self._cells) else answer

    def learn(self, scaled: Numbers, slope: float) -> None:
        """Move the weights against the *slope* of the loss, given the signals as ``scaled`` returns them.

        The slope is 1 - p if the answer was at least the actual value, else -p, where p is the probability of
        the quantile.
        """
        slopes = slope * scaled[: len(self.weights)]
        self._squares += slopes * slopes
        steps = slopes / np.sqrt(self._squares)
        self.weights -= RATE * steps
        self.weights[0] -= (LEVEL_RATE - RATE) * steps[0]
        if len(self._cells):
            cells = self._cells_of(scaled)
            self._cell_squares[cells] += slope * slope
            self._cells[cells] -= CELL_RATE * slope / np.sqrt(self._cell_squares[cells])

    def _cells_of(self, scaled: Numbers) -> Indexes:
        """Return the cell of each partition to which the signals belong."""
        cells: Indexes = (scaled[self._asked] > self._thresholds) @ _POWERS + self._first_cells
        return cells
