"""Weights of experts by their normalised losses: for outcomes that overlap, where gradients say little.

When runs overlap, many outcomes of one burst arrive together. A gradient of the loss then moves all weight to
the experts that erred on the burst's side. Losses have no side: the weight of an expert falls exponentially
with the excess of its loss over the least loss (Cesa-Bianchi, Lugosi, "Prediction, Learning, and Games",
2006, sections 2.1 and 2.11). The losses for one value are divided by the median loss of the experts for this
value, as in the scale-free rates of de Rooij et al. ("Follow the leader if you can, hedge if you must", JMLR
15, 2014): so one run that took a hundred times as long as usual counts like any other run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forecasting.memo import Memo

Numbers = NDArray[np.float64]

_DECAY = 0.995  # factor of old losses at each value
_NEGLIGIBLE = 1e-3  # ratio to the largest weight, below which a weight becomes 0
_LARGEST_SQUARABLE = 1e150
_PRIOR_VALUES = 10.0  # the weight of a prior
# by whether errors are squared: the rate of learning, and the limit of one loss in median losses
_RATE = {False: 1.0, True: 0.5}
_LARGEST_LOSS = {False: 20.0, True: 5.0}


@dataclass(slots=True)
class LossWeights:
    """Learns a weight for each expert, from absolute errors, or from squared errors if *squared*."""

    squared: bool = False
    _losses: Numbers = field(default_factory=lambda: np.zeros(0), init=False)
    _evidence: float = field(default=0.0, init=False)
    _memo: Memo[Numbers] = field(default_factory=Memo, init=False, compare=False)  # by the number of experts

    def update(self, forecasts: Numbers, value: float) -> None:
        """Learn the actual *value* from the *forecasts* of the experts; NaN for an expert that sleeps."""
        self._memo.clear()
        errors = np.minimum(np.abs(forecasts - value), _LARGEST_SQUARABLE)
        if self.squared:
            errors *= errors
        usual = _median(errors)
        if not len(self._losses):
            self._losses = np.zeros(len(forecasts))
        self._losses *= _DECAY
        self._evidence = _DECAY * self._evidence + 1.0
        if usual > 0.0:
            with np.errstate(over="ignore"):
                losses = np.minimum(errors / usual, _LARGEST_LOSS[self.squared])
            self._losses += np.where(np.isnan(losses), 1.0, losses)

    def start(self, losses: Numbers) -> None:
        """Begin as if a few values with these mean *losses*, in median losses, had been learned."""
        self._memo.clear()
        self._losses, self._evidence = _PRIOR_VALUES * losses, _PRIOR_VALUES

    def mean_losses(self) -> Numbers:
        """Return the mean loss of each expert, in median losses; empty before the first value."""
        return self._losses / max(self._evidence, 1.0)

    def widen(self, count: int) -> None:
        """Make room for *count* experts; additional experts are appended with the mean loss."""
        self._memo.clear()
        if len(self._losses):
            added = np.full(count - len(self._losses), self._losses.mean())
            self._losses = np.concatenate([self._losses, added])

    def weights(self, awake: NDArray[np.bool_] | None, count: int) -> Numbers:
        """Return the weights of *count* experts: 1 in total, 0 for those not *awake* (None: all are)."""
        if awake is not None:
            weights = self._unscaled(count) * awake
            if not weights.any():
                weights = awake.astype(np.float64)
            weights /= np.add.reduce(weights)
            return weights
        cached = self._memo.get(count)
        if cached is not None:
            return cached
        weights = self._unscaled(count)
        weights /= np.add.reduce(weights)
        return self._memo.keep(count, weights)

    def _unscaled(self, count: int) -> Numbers:
        if not len(self._losses):
            return np.ones(count)
        least = float(np.minimum.reduce(self._losses))
        excess = (self._losses - least) / max(least, 1e-300)
        rate = _RATE[self.squared] * math.sqrt(self._evidence)
        weights: Numbers = np.exp(-np.minimum(rate * excess, 700.0))
        weights *= weights >= _NEGLIGIBLE
        return weights


def _median(errors: Numbers) -> float:
    """Return the upper median of *errors*, ignoring NaN; 0 if all are NaN."""
    ordered = np.sort(errors)
    count = int(ordered.searchsorted(math.nan))  # NaN comes last
    return float(ordered[count // 2]) if count else 0.0
