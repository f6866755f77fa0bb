"""From four published figures of a stage to every runtime that it takes, slowest last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import scipy  # its parts are loaded when they are used: most processes never solve
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# One for each of the runs "per 4,000" of which minimum and maximum are published: 504 ranks of 8 levels.
LEVELS = 8
QUANTILES = 504 * LEVELS

_Z = np.array([NormalDist().inv_cdf((i + 0.5) / QUANTILES) for i in range(QUANTILES)])


class WeatherError(Exception):
    """The weather cannot be made. For good: nothing about it changes by itself."""


class UnknownProfile(WeatherError):
    """There is no weather profile of that name."""


class ImpossibleFigures(WeatherError):
    """No curve of ours has these figures."""


@dataclass(frozen=True)
class RuntimeFigures:
    """What is published about a runtime, in seconds and in the order of the publications."""

    mean: float
    low: float
    high: float
    stdev: float


def _long_tailed(a: float, b: float) -> Floats:
    """Between log-normal (a large) and one that saturates at its maximum (a small)."""
    share = np.exp(a)
    slower: Floats = 1.0 - share + share * np.exp(np.exp(b) * (_Z[-1] - _Z))
    return 1.0 / slower


def _bell_with_outliers(a: float, b: float) -> Floats:
    """Johnson's S_U: a bell, skewed by *a*, with the heavier tails the larger *b* is."""
    return np.asarray(np.sinh(a + np.exp(b) * _Z))


@lru_cache(maxsize=256)
def quantiles(figures: RuntimeFigures) -> Floats:
    """Return QUANTILES equally likely runtimes, rising, that have *figures* exactly.

    The ends are pinned to the published minimum and maximum; the two parameters of the curve between them are
    solved for the mean and the standard deviation. The first family of curves that has a solution is taken.

    Raises:
        ImpossibleFigures: no family has one, for example because the mean is not between the extremes.
    """
    for family in (_long_tailed, _bell_with_outliers):
        curve = _solve(family, figures)
        if curve is not None:
            runtimes = figures.low + (figures.high - figures.low) * curve
            runtimes.flags.writeable = False  # cached: everybody gets the same array
            return runtimes
    raise ImpossibleFigures(f"no curve has {figures}")


def _solve(family: Callable[[float, float], Floats], figures: RuntimeFigures) -> Floats | None:
    """Return the curve of *family* from 0 to 1 with the mean and deviation of *figures*, None without one."""
    span = figures.high - figures.low
    wanted = np.array([figures.mean - figures.low, figures.stdev])
    if span <= 0 or wanted.min() <= 0 or wanted.max() >= span:
        return None
    wanted = np.log(wanted / span)

    def curve(parameters: Floats) -> Floats:
        raw = family(*parameters)
        pinned: Floats = (raw - raw[0]) / (raw[-1] - raw[0])
        return pinned

    def error(parameters: Floats) -> Floats:
        with np.errstate(all="ignore"):  # the search may stray; what counts is where it ends
            drawn = curve(parameters)
            off: Floats = np.log([drawn.mean(), drawn.std()]) - wanted
            return off

    found = scipy.optimize.root(error, np.zeros(2))
    return curve(found.x) if found.success else None
