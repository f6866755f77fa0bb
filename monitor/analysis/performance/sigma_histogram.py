"""Count values in classes of standard deviations from their mean. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.analysis.performance.describe import describe

CLASS_WIDTH = 0.5  # standard deviations
MOST_SIGMAS = 4.0  # values further away are counted in two open classes


@dataclass(frozen=True)
class SigmaClass:
    """*count* values x with lower <= (x - mean) / stdev < upper; None: the class is open on this side."""

    lower: float | None
    upper: float | None
    count: int


@dataclass(frozen=True)
class SigmaHistogram:
    """The distribution of *n* values around their *mean*.

    The classes are contiguous, ascend and contain all values; the first and the last class that have a value
    are the outermost. There are none without a spread: *stdev* is 0, or None of less than two values.
    """

    n: int
    mean: float | None
    stdev: float | None
    skewness: float | None
    classes: Sequence[SigmaClass]


def sigma_histogram(values: NDArray[np.float64]) -> SigmaHistogram:
    """Count *values* in classes of half a standard deviation up to four from the mean, and in two beyond.

    Raises:
        NotFinite: a value is NaN or infinite.
    """
    found = describe(values)
    classes: Sequence[SigmaClass] = ()
    if found.mean is not None and found.stdev:
        classes = _classes((values - found.mean) / found.stdev)
    return SigmaHistogram(found.n, found.mean, found.stdev, found.skewness, classes)


def _classes(sigmas: NDArray[np.float64]) -> list[SigmaClass]:
    inner = np.linspace(-MOST_SIGMAS, MOST_SIGMAS, round(2 * MOST_SIGMAS / CLASS_WIDTH) + 1)
    edges = [-math.inf, *inner.tolist(), math.inf]
    counts = np.bincount(np.searchsorted(inner, sigmas, side="right"), minlength=len(edges) - 1)
    filled = np.flatnonzero(counts)
    return [
        SigmaClass(_bound(edges[index]), _bound(edges[index + 1]), int(counts[index]))
        for index in range(filled[0], filled[-1] + 1)
    ]


def _bound(edge: float) -> float | None:
    return edge if math.isfinite(edge) else None
