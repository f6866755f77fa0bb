"""Sweeps with known effects: seven factors of a storage system, as random draws of one seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from forecasting.reading.sweeps import Levels, Sweep, SweepValue
from forecasting.sweeps.design import Term

FACTORS: Mapping[str, tuple[str, ...]] = {
    "stripe": ("16K", "64K", "256K"),
    "width": ("1", "2", "4", "8", "16"),
    "filesystem": ("raw", "xfs"),
    "readahead": ("off", "on"),
    "scheduler": ("none", "mq-deadline", "kyber", "bfq"),
    "depth": ("1", "8", "32"),
    "pattern": ("sequential", "random"),
}
NOISE = 0.03
COLD = 0.3  # of the combinations: their first pass takes longer
PASSES = 6
_PLANTED_FACTORS = 4
_PLANTED_PAIRS = 4


@dataclass(frozen=True)
class Planted:
    """A sweep of a part of all combinations; *effects* has the true logarithmic effects of each planted
    term."""

    sweep: Sweep
    effects: Mapping[Term, NDArray[np.float64]]  # one axis for each factor of the term
    truth: NDArray[np.float64]  # logarithms, one axis for each factor

    def size(self, term: Term) -> float:
        """Return the true size of *term*: the ratio of its largest to its smallest effect."""
        effect = self.effects.get(term)
        return 1.0 if effect is None else float(np.exp(effect.max() - effect.min()))

    def value(self, levels: Mapping[str, str]) -> float:
        """Return the true value of a combination, relative to the best one."""
        place = tuple(FACTORS[factor].index(level) for factor, level in levels.items())
        return float(np.exp(self.truth[place] - self.truth.max()))


def planted(seed: int, share: float = 0.25, noise: float = NOISE) -> Planted:
    """Return a sweep that measures *share* of the combinations, in passes with relative *noise*."""
    draw = np.random.default_rng(seed)
    names = list(FACTORS)
    terms: list[Term] = [(name,) for name in draw.choice(names, _PLANTED_FACTORS, replace=False).tolist()]
    pairs = [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]
    terms += [pairs[number] for number in draw.choice(len(pairs), _PLANTED_PAIRS, replace=False)]
    effects = {term: _effect(draw, tuple(len(FACTORS[name]) for name in term)) for term in terms}
    truth = np.zeros(tuple(map(len, FACTORS.values())))
    for term, effect in effects.items():
        axes = [len(FACTORS[name]) if name in term else 1 for name in names]
        truth = truth + effect.reshape(axes)
    return Planted(_measured(draw, truth, share, noise), effects, truth)


def _effect(draw: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return effects that add up to 0 along each axis, with a size of 5 to 60 %."""
    effect = draw.standard_normal(shape)
    for axis in range(len(shape)):
        effect = effect - effect.mean(axis=axis, keepdims=True)
    size = np.log1p(draw.uniform(0.05, 0.6))
    return np.asarray(effect * size / (effect.max() - effect.min()))


def _measured(draw: np.random.Generator, truth: NDArray[np.float64], share: float, noise: float) -> Sweep:
    every: list[Levels] = list(product(*FACTORS.values()))
    logarithms = truth.ravel()
    cells: dict[Levels, list[SweepValue]] = {}
    for number in sorted(draw.choice(len(every), round(share * len(every)), replace=False)):
        values = np.exp(5.0 + logarithms[number] + noise * draw.standard_normal(PASSES))
        if draw.random() < COLD:
            values[0] *= draw.uniform(0.5, 0.9)
        cells[every[number]] = [SweepValue(place + 1, float(value)) for place, value in enumerate(values)]
    return Sweep(tuple(FACTORS), cells)
