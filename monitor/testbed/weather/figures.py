"""Compute quantile functions of runtimes from the four published figures of a stage."""

from __future__ import annotations

import math
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


def _normal_quantiles(number: int) -> Floats:
    return np.array([NormalDist().inv_cdf((i + 0.5) / number) for i in range(number)])


_Z = _normal_quantiles(QUANTILES)


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


@dataclass(frozen=True)
class QuietFigures:
    """A runtime that is nearly always the same, with rare outliers; minimum and maximum are not published.

    The core is log-normal. The *outlier_share* slowest runs take an exponential time more than the slowest of
    the core: how much more is solved for the mean and the deviation.

    Attributes:
        mean, stdev: published, of all runs, in seconds.
        core_cv: coefficient of variation of the core.
    """

    mean: float
    stdev: float
    core_cv: float
    outlier_share: float


Figures = RuntimeFigures | QuietFigures


def _long_tailed(a: float, b: float) -> Floats:
    """Return the quantiles of a curve from log-normal (large *a*) to saturated at its maximum (small *a*)."""
    share = np.exp(a)
    slower: Floats = 1.0 - share + share * np.exp(np.exp(b) * (_Z[-1] - _Z))
    return 1.0 / slower


def _bell_with_outliers(a: float, b: float) -> Floats:
    """Return the quantiles of Johnson's S_U: skewed by *a*, with tails that grow with *b*."""
    return np.asarray(np.sinh(a + np.exp(b) * _Z))


@lru_cache(maxsize=256)
def quantiles(figures: Figures) -> Floats:
    """Return QUANTILES equally likely runtimes, ascending, that have *figures* exactly.

    Raises:
        ImpossibleFigures: there are none, e.g. because the mean is not between the extremes.
    """
    runtimes = _between_extremes(figures) if isinstance(figures, RuntimeFigures) else _with_outliers(figures)
    if runtimes is None:
        raise ImpossibleFigures(f"no curve has {figures}")
    runtimes.flags.writeable = False  # cached: all callers share the array
    return runtimes


def _between_extremes(figures: RuntimeFigures) -> Floats | None:
    """Return the runtimes of *figures*; None if there are none.

    The ends are the published minimum and maximum; the two parameters of the curve between them are solved
    for the mean and the standard deviation. The first family of curves with a solution is used.
    """
    for family in (_long_tailed, _bell_with_outliers):
        curve = _solve(family, figures)
        if curve is not None:
            return figures.low + (figures.high - figures.low) * curve
    return None


def _with_outliers(figures: QuietFigures) -> Floats | None:
    """Return the runtimes of *figures*; None if the core alone deviates more, or no outlier is left."""
    outliers = round(QUANTILES * figures.outlier_share)
    if not 0 < outliers < QUANTILES or min(figures.mean, figures.stdev, figures.core_cv) <= 0:
        return None
    sigma = math.sqrt(math.log1p(figures.core_cv**2))
    core = np.exp(sigma * _normal_quantiles(QUANTILES - outliers))
    more = -np.log1p(-(np.arange(outliers) + 0.5) / outliers)  # quantiles of the exponential distribution
    targets = np.log([figures.mean, figures.stdev])

    def runtimes(parameters: Floats) -> Floats:
        typical, scale = np.exp(parameters)
        return np.asarray(np.concatenate([typical * core, typical * core[-1] + scale * more]))

    def error(parameters: Floats) -> Floats:
        drawn = runtimes(parameters)
        deviation: Floats = np.log([drawn.mean(), drawn.std()]) - targets
        return deviation

    with np.errstate(all="ignore"):  # the solver may overflow on its way
        parameters = _root(error, targets)
    return None if parameters is None else runtimes(parameters)


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
        parameters = _root(error, np.zeros(2))
    return None if parameters is None else curve(parameters)


def _root(error: Callable[[Floats], Floats], parameters: Floats) -> Floats | None:
    """Return the root of *error* that Newton's method finds from *parameters*; None if it finds no root.

    A step that does not reduce the error is halved. Importing the solvers of scipy would take longer than
    all solutions take here.
    """
    residual = error(parameters)
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
