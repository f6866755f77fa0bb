"""Compute quantile functions of runtimes from the four published figures of a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# About as many as the 4,000 runs of which minimum and maximum are published: 504 ranks of 8 levels.
LEVELS = 8
QUANTILES = 504 * LEVELS
# Of the solver: of logarithms, so relative to the figures.
TOLERANCE = 1e-11
DIFFERENCE = 1e-7
MAX_STEPS = 100
MAX_HALVINGS = 10

_Z = np.array([NormalDist().inv_cdf((i + 0.5) / QUANTILES) for i in range(QUANTILES)])


class WeatherError(Exception):
    """Root of the errors of weather; a retry does not help."""


class UnknownProfile(WeatherError):
    """No weather profile has that name."""


class ImpossibleFigures(WeatherError):
    """No quantile function has these figures."""


@dataclass(frozen=True)
class RuntimeFigures:
    """Published mean, minimum (*low*), maximum (*high*) and deviation of a runtime, in seconds.

    The fields have the order of the publications.
    """

    mean: float
    low: float
    high: float
    stdev: float


def _long_tailed(a: float, b: float) -> Floats:
    """Return the quantiles of a curve from log-normal (large *a*) to saturated at its maximum (small *a*)."""
    share = np.exp(a)
    slower: Floats = 1.0 - share + share * np.exp(np.exp(b) * (_Z[-1] - _Z))
    return 1.0 / slower


def _bell_with_outliers(a: float, b: float) -> Floats:
    """Return the quantiles of Johnson's S_U: skewed by *a*, with tails that grow with *b*."""
    return np.asarray(np.sinh(a + np.exp(b) * _Z))


@lru_cache(maxsize=256)
def quantiles(figures: RuntimeFigures) -> Floats:
    """Return QUANTILES equally likely runtimes, ascending, that have *figures* exactly.

    The ends are the published minimum and maximum; the two parameters of the curve between them are solved
    for the mean and the standard deviation. The first family of curves with a solution is used.

    Raises:
        ImpossibleFigures: no family has a solution, e.g. because the mean is not between the extremes.
    """
    for family in (_long_tailed, _bell_with_outliers):
        curve = _solve(family, figures)
        if curve is not None:
            runtimes = figures.low + (figures.high - figures.low) * curve
            runtimes.flags.writeable = False  # cached: all callers share the array
            return runtimes
    raise ImpossibleFigures(f"no curve has {figures}")


def _solve(family: Callable[[float, float], Floats], figures: RuntimeFigures) -> Floats | None:
    """Return the curve of *family* with the mean and deviation of *figures*; None if there is no such curve.

    The curve is scaled to the range from 0 (the minimum) to 1 (the maximum).
    """
    span = figures.high - figures.low
    targets = np.array([figures.mean - figures.low, figures.stdev])
    if span <= 0 or targets.min() <= 0 or targets.max() >= span:
        return None
    targets = np.log(targets / span)

    def curve(parameters: Floats) -> Floats:
        raw = family(*parameters)
        pinned: Floats = (raw - raw[0]) / (raw[-1] - raw[0])
        return pinned

    def error(parameters: Floats) -> Floats:
        drawn = curve(parameters)
        deviation: Floats = np.log([drawn.mean(), drawn.std()]) - targets
        return deviation

    with np.errstate(all="ignore"):  # the solver may overflow on its way
        parameters = _root(error)
    return None if parameters is None else curve(parameters)


def _root(error: Callable[[Floats], Floats]) -> Floats | None:
    """Return the root of *error* that Newton's method finds from 0; None if the method finds no root.

    A step that does not reduce the error is halved. Importing the solvers of scipy would take longer than
    all solutions take here.
    """
    parameters, residual = np.zeros(2), error(np.zeros(2))
    for _ in range(MAX_STEPS):
        size = np.abs(residual).max()
        if size < TOLERANCE:
            return parameters
        jacobian = np.column_stack(
            [(error(parameters + h) - residual) / DIFFERENCE for h in DIFFERENCE * np.eye(2)]
        )
        if not abs(np.linalg.det(jacobian)) > 0:  # singular, or not a number
            return None
        step = np.linalg.solve(jacobian, -residual)
        for trial in (parameters + step * 0.5**halvings for halvings in range(MAX_HALVINGS)):
            residual = error(trial)
            if np.abs(residual).max() < size:
                parameters = trial
                break
        else:
            return None
    return None
