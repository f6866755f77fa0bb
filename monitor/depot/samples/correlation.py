"""How much two columns of numbers have to do with each other, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded when they are used: most processes never correlate

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_PAIRS = 4  # the interval divides by the root of three less
LEVEL = 0.95
_ROUNDING = 1e-13  # relative to the values: differences as small as this are none


@dataclass(frozen=True)
class Coefficient:
    """From -1 to 1, with the interval in which it lies with the probability that was asked for, and the
    two-sided *p*: how often chance alone would give one as far from 0."""

    value: float
    lower: float
    upper: float
    p: float


@dataclass(frozen=True)
class Correlation:
    """Of *n* pairs. Where there is none, *why* says it: ``too_few`` pairs, or one column is ``constant``."""

    n: int
    level: float
    pearson: Coefficient | None
    spearman: Coefficient | None
    why: str = ""


def correlation(
    first: NDArray[np.float64], second: NDArray[np.float64], *, level: float = LEVEL
) -> Correlation:
    """Of columns of one length, finite numbers.

    Intervals are Fisher's (*z* = artanh *r*, standard error 1 / sqrt(n - 3)); for Spearman with the variance
    of Bonett and Wright: Sample size requirements for estimating Pearson, Kendall and Spearman correlations,
    Psychometrika 65, 2000. The *p* of both is by Student's *t* with n - 2 degrees of freedom.
    """
    n = len(first)
    if why := _nothing_to_say(first, second):
        return Correlation(n, level, None, None, why)
    linear, ranked = _r(first, second), _r(_ranks(first), _ranks(second))
    return Correlation(
        n, level, _coefficient(linear, n, level, 1.0), _coefficient(ranked, n, level, 1 + ranked**2 / 2)
    )


def _nothing_to_say(first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    if len(first) < LEAST_PAIRS:
        return "too_few"
    return "constant" if any(map(_is_constant, (first, second))) else ""


def _is_constant(column: NDArray[np.float64]) -> bool:
    largest = np.abs(column).max()
    return bool(largest == 0 or np.ptp(column / largest) <= _ROUNDING)


def _r(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Pearson's. Columns are scaled before they are multiplied: 1e200 squared is no number."""
    x, y = (_unit(column) for column in (first, second))
    return float(np.clip(x @ y, -1.0, 1.0))


def _unit(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """The column without its mean, of length 1."""
    scaled = column / np.abs(column).max()
    centred: NDArray[np.float64] = scaled - scaled.mean()
    return centred / np.linalg.norm(centred)


def _ranks(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 1 on; equal values share the mean of theirs."""
    _, which, counts = np.unique(column, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[which]
    return ranks


def _coefficient(r: float, n: int, level: float, variance: float) -> Coefficient:
    if abs(r) == 1.0:
        return Coefficient(r, r, r, 0.0)
    reach = float(scipy.special.ndtri((1 + level) / 2)) * math.sqrt(variance / (n - 3))
    t = abs(r) * math.sqrt((n - 2) / ((1 - r) * (1 + r)))
    z = math.atanh(r)
    return Coefficient(
        r, math.tanh(z - reach), math.tanh(z + reach), 2 * float(scipy.special.stdtr(n - 2, -t))
    )
