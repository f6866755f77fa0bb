"""Judge the passes of a sweep: is the first one different, which values stand out, is the rest steady?"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

CONFIDENCE = 0.95
MIN_VALUES = 5  # with four values the largest possible deviation is 1.5 deviations: none could be rejected
ROUNDS = 5  # of the steady state
_RANGE = 0.2  # of the mean: largest minus smallest
_SLOPE = 0.1  # of the mean: the rise of the fitted line over the rounds


@dataclass(frozen=True)
class PassEffect:
    """The ratio of first passes to the later ones of their cells, with its interval; from *n* cells."""

    n: int
    ratio: float
    low: float
    high: float
    p_value: float


def first_pass(cells: Collection[Sequence[float]]) -> PassEffect | None:
    """Compare the first value of each cell with the mean of its later ones (a paired t test of logarithms).

    *cells* has the positive values of each cell, pass by pass. None if fewer than two cells have later
    values.
    """
    logarithms = [np.log(values) for values in cells if len(values) > 1]
    if len(logarithms) < 2:
        return None
    differences = np.array([values[0] - values[1:].mean() for values in logarithms])
    mean, n = float(differences.mean()), len(differences)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    reach = error * float(scipy.special.stdtrit(n - 1, (1 + CONFIDENCE) / 2))
    p_value = float(2 * scipy.special.stdtr(n - 1, -abs(mean) / error)) if error else float(mean == 0.0)
    return PassEffect(n, math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), p_value)


def outliers(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Flag the values that Chauvenet's criterion rejects, with the deviation of the sample.

    A value x of n is rejected if ``n * erfc(|x - mean| / (s * sqrt(2))) < 1/2``. Fewer than ``MIN_VALUES``
    values have no outliers: the largest of n values deviates by at most ``(n - 1) / sqrt(n)`` deviations.

    Source: W. Chauvenet, A Manual of Spherical and Practical Astronomy, vol. 2 (1863), p. 558.
    """
    n = len(values)
    deviation = float(values.std(ddof=1)) if n >= MIN_VALUES else 0.0
    if not deviation:
        return np.zeros(n, dtype=np.bool_)
    distances = np.abs(values - values.mean()) / (deviation * math.sqrt(2.0))
    return np.asarray(n * scipy.special.erfc(distances) < 0.5, dtype=np.bool_)


def outlier_share(n: int, draws: int = 20_000) -> float:
    """Return the share of *n* normal values that ``outliers`` flags: what noise alone gives.

    The share has no closed form: it is counted in *draws* fixed samples.
    """
    if n < MIN_VALUES:
        return 0.0
    samples = np.random.default_rng(n).standard_normal((draws, n))
    distances = np.abs(samples - samples.mean(axis=1, keepdims=True))
    scaled = distances / (samples.std(axis=1, ddof=1, keepdims=True) * math.sqrt(2.0))
    return float(np.mean(n * scipy.special.erfc(scaled) < 0.5))


def is_steady(values: Sequence[float]) -> bool:
    """Return whether the last five values are a steady state.

    They differ by at most 20 % of their mean, and the line fitted to them rises or falls by at most 10 % of
    it. Fewer values are not steady. Source: SNIA, Solid State Storage Performance Test Specification 2.0.2,
    2.1.24.
    """
    last = values[-ROUNDS:]
    if len(last) < ROUNDS:
        return False
    mean = statistics.fmean(last)
    rise = statistics.linear_regression(range(ROUNDS), last).slope * (ROUNDS - 1)
    return max(last) - min(last) <= _RANGE * mean and abs(rise) <= _SLOPE * mean


def location(values: NDArray[np.float64]) -> float:
    """Return the median of all pair means of *values*: almost as exact as the mean, and an outlier moves it
    little.

    Source: J. L. Hodges and E. L. Lehmann, Estimates of Location Based on Rank Tests, Annals of Mathematical
    Statistics 34 (1963).
    """
    first, second = np.triu_indices(len(values))
    return float(np.median((values[first] + values[second]) / 2.0))
