"""Find the runs from which on a duration has another level. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from monitor.analysis.performance.describe import require_finite

LEAST_RUNS = 5  # of a level
_PENALTY = 3.0  # times log n, for each change point
_NEIGHBOURS = 3  # on each side of a value
_OUTLIER = 3.0  # standard deviations from the neighbours' median
_MOST_DEPENDENT = 0.9  # the largest coefficient of a first-order autoregression
_NORMAL = 1.4826  # standard deviation of a normal distribution / its median absolute deviation


@dataclass(frozen=True)
class LevelChange:
    """From position *index* on values have another level; *before* and *after* are the medians of both."""

    index: int
    before: float
    after: float


def change_points(values: NDArray[np.float64]) -> list[LevelChange]:
    """Return the changes of the level of *values*, which are in order of time.

    The levels minimise the sum of squared deviations plus 3 log n for each change, of values in robust
    standard deviations. The penalty is the leading term of the modified BIC (Zhang, Siegmund, Biometrics 63,
    2007). Each level has at least five values; single slow runs are no level. Time grows with the square of
    the number of values: 10,000 take half a second.

    Raises:
        NotFinite: a value is NaN or infinite.
    """
    require_finite(values)
    signal = scaled_signal(values) if len(values) >= 2 * LEAST_RUNS else None
    if signal is None:
        return []
    edges = _edges(signal, penalty(len(values)))
    medians = [float(np.median(values[start:end])) for start, end in pairwise(edges)]
    return [
        LevelChange(index, before, after)
        for index, (before, after) in zip(edges[1:-1], pairwise(medians), strict=True)
    ]


def _edges(signal: NDArray[np.float64], penalty: float) -> list[int]:
    """Return the edges of the levels of least cost, 0 and n included, by optimal partitioning.

    Jackson et al.: An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing
    Letters 12, 2005. It is exact. The pruning of PELT is not if levels have a least length, unless it is
    delayed by that length; implementations differ.
    """
    n = len(signal)
    sums = np.concatenate([[0.0], np.cumsum(signal)])
    squares = np.concatenate([[0.0], np.cumsum(signal**2)])
    costs = np.full(n + 1, np.inf)  # of the best levels of the first values, by their number
    costs[0] = -penalty
    starts = np.zeros(n + 1, np.int64)  # of the last of these levels
    for end in range(LEAST_RUNS, n + 1):
        few = end - LEAST_RUNS + 1
        lengths = np.arange(end, LEAST_RUNS - 1, -1)
        deviations = squares[end] - squares[:few] - (sums[end] - sums[:few]) ** 2 / lengths
        totals = costs[:few] + deviations + penalty
        starts[end] = np.argmin(totals)
        costs[end] = totals[starts[end]]
    edges = [n]
    while edges[-1]:
        edges.append(int(starts[edges[-1]]))
    return edges[::-1]


def penalty(n: int) -> float:
    """Return the cost of a change point among *n* values, in squared standard deviations."""
    return _PENALTY * math.log(n)


def scaled_signal(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return *values* less their median in robust standard deviations, outliers clipped; None if constant.

    The scale comes from the differences of consecutive values, which a change of level hardly affects: their
    median absolute deviation. If most of these are 0, it is their mean absolute size. A value more than three
    standard deviations from the median of itself and three neighbours on each side is clipped to that
    distance (Hampel's filter): one outlier would otherwise cost as much as a level of many runs.
    """
    differences = np.diff(values)
    scale = _NORMAL * float(np.median(np.abs(differences)))
    is_mostly_constant = scale == 0
    if is_mostly_constant:
        scale = float(np.abs(differences).mean())
    if scale == 0:
        return None
    deviation = scale / math.sqrt(2)
    padded = np.pad(values, _NEIGHBOURS, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1)
    medians = np.median(windows, axis=1)
    clipped = np.clip(values, medians - _OUTLIER * deviation, medians + _OUTLIER * deviation)
    signal: NDArray[np.float64] = (clipped - np.median(values)) / deviation
    return signal if is_mostly_constant else signal * _shrinkage(signal)


def _shrinkage(signal: NDArray[np.float64]) -> float:
    """Return the factor that gives *signal*, scaled by its differences, a long-run variance of 1.

    Runs that depend on the run before wander, which looks like changes of level. If the noise is a
    first-order autoregression with coefficient phi, the lag-1 autocorrelation of its differences is
    -(1 - phi) / 2, and its long-run variance is (1 + phi) / (1 - phi)**2 times half the variance of the
    differences. Large ones, as of a change of level, are left out (after Tecuapetla-Gomez and Munk:
    Autocovariance estimation in regression with a discontinuous signal and m-dependent errors, Scandinavian
    Journal of Statistics 44, 2017). The estimate is reduced by about its standard error, 1 / sqrt(n): in few
    runs an excess would hide changes.
    """
    differences = np.diff(signal)
    small = np.where(np.abs(differences) < _OUTLIER * math.sqrt(2), differences, 0.0)
    squares = float(small @ small)
    if squares == 0:
        return 1.0
    phi = 1 + 2 * float(small[1:] @ small[:-1]) / squares - 1 / math.sqrt(len(small))
    phi = min(max(phi, 0.0), _MOST_DEPENDENT)
    return (1 - phi) / math.sqrt(1 + phi)
