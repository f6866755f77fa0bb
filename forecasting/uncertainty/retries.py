"""The time T until a run has succeeded, if failed runs are retried.

The first try succeeds with one probability, each retry with another, since a failure may be the beginning of
an outage. A try that fails takes a time of its own, and a delay passes before the retry. With N failures

    T = S + F(1) + ... + F(N) + N * delay,    P(N = 0) = first,  P(N > n) = (1 - first) * (1 - later) ** n.

where the times of success S and of failure F are independent of N and of each other. All arguments are arrays
with an entry, or a row, for each *candidate*; a thousand of them take milliseconds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forecasting.base import LARGEST_VALUE, InvalidNumber

Column = NDArray[np.float64]

_SCENARIOS = 256
_GENERATOR = 109  # of the lattice: the best approximation to a hundred thousand random scenarios
_FAILURES_DRAWN = 3  # failures with a time of their own; further ones take the mean time


def mean_seconds(
    first: ArrayLike,
    later: ArrayLike,
    success_seconds: ArrayLike,
    failure_seconds: ArrayLike,
    delay_seconds: float = 0.0,
) -> Column:
    """Return the mean of T from the mean times of success and of failure.

    It is infinite if the first try may fail and no retry can succeed.

    Raises:
        InvalidNumber: a probability is not in [0, 1], or a time is negative or not finite.
    """
    first, later = _probabilities(first), _probabilities(later)
    lost = _times(failure_seconds) + _times(delay_seconds)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        failures = np.where(first < 1.0, (1.0 - first) / later, 0.0)
        return np.asarray(_times(success_seconds) + np.where(failures > 0.0, failures * lost, 0.0))


def quantiles_seconds(
    probabilities: Sequence[float],
    first: ArrayLike,
    later: ArrayLike,
    levels: Sequence[float],
    success_quantiles: ArrayLike,
    failure_quantiles: ArrayLike,
    delay_seconds: float = 0.0,
) -> Column:
    """Return the quantiles of T: a row for each of *probabilities*, a column for each candidate.

    *success_quantiles* and *failure_quantiles* have a row for each candidate: its quantiles at *levels*,
    which rise. They are interpolated between two levels, and constant beyond the outermost.

    All candidates get the same 256 scenarios, which are spread evenly (a rank-1 lattice; Korobov 1959). So
    the result is deterministic, and a candidate that is better in everything, however little, never ranks
    behind another. Errors are about 1 % of the time, and 2 % where most tries fail. A quantile is infinite if
    endless failure is probable enough.

    Raises:
        InvalidNumber: a probability is not in [0, 1], or a time is negative or not finite.
    """
    first, later = _probabilities(first)[:, None], _probabilities(later)[:, None]
    success, failure = _times(success_quantiles), _times(failure_quantiles)
    scenarios = _scenarios()
    failures = _failures(first, later, scenarios[0])
    endless = np.isinf(failures)
    failures[endless] = 0.0
    seconds = success @ _interpolation(levels, scenarios[1])
    for number, draws in enumerate(scenarios[2:], start=1):
        seconds += np.where(failures >= number, failure @ _interpolation(levels, draws), 0.0)
    mean = failure @ _interpolation(levels, scenarios[0]).mean(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # if hardly any try succeeds
        seconds += failures * _times(delay_seconds) + np.maximum(failures - _FAILURES_DRAWN, 0.0) * mean
    seconds[endless] = math.inf
    seconds.sort(axis=1)
    ranks = np.ceil(_probabilities(probabilities) * _SCENARIOS).astype(np.int64) - 1
    return np.asarray(seconds[:, np.maximum(ranks, 0)].T)


@functools.cache
def _scenarios() -> Column:
    """Return points of the unit cube, a column each: for the number of failures, S, and each F drawn."""
    powers = [pow(_GENERATOR, power, _SCENARIOS) for power in range(2 + _FAILURES_DRAWN)]
    return np.asarray((np.outer(powers, np.arange(_SCENARIOS)) % _SCENARIOS + 0.5) / _SCENARIOS)


def _failures(first: Column, later: Column, uniform: Column) -> Column:
    """Return the number of failures of each candidate in each scenario."""
    with np.errstate(divide="ignore", invalid="ignore"):
        repetitions = np.floor((np.log1p(-uniform) - np.log1p(-first)) / np.log1p(-later))
    return np.where(uniform < first, 0.0, 1.0 + np.where(later > 0.0, repetitions, math.inf))


def _interpolation(levels: Sequence[float], uniform: Column) -> Column:
    """Return the matrix that turns quantiles at *levels* into those at *uniform*."""
    return np.array([np.interp(uniform, levels, unit) for unit in np.eye(len(levels))])


def _probabilities(numbers: ArrayLike) -> Column:
    array = np.asarray(numbers, dtype=np.float64)
    if not ((array >= 0.0) & (array <= 1.0)).all():
        raise InvalidNumber("expected probabilities from 0 to 1")
    return array


def _times(numbers: ArrayLike) -> Column:
    array = np.asarray(numbers, dtype=np.float64)
    if not ((array >= 0.0) & (array <= LARGEST_VALUE)).all():
        raise InvalidNumber("expected times that are finite and not negative, in seconds")
    return array
