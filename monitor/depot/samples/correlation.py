"""Compute the correlation of two columns of numbers, with confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # submodules load when used: most processes never correlate

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_PAIRS = 4  # the interval divides by sqrt(n - 3)
LEVEL = 0.95
_ROUNDING = 1e-13  # relative to the values: smaller differences are rounding errors


@dataclass(frozen=True)
class Coefficient:
    """A correlation coefficient from -1 to 1, its confidence interval, and the two-sided p-value *p*."""

    value: float
    lower: float
    upper: float
    p: float


@dataclass(frozen=True)
class Correlation:
    """The correlation of two columns.

    Attributes:
        n: number of pairs.
        level: confidence level of the intervals, e.g. 0.95.
        pearson, spearman: the coefficients; None if *why* is set.
        why: reason for which there are no coefficients: "too_few" pairs or a "constant" column; else empty.
    """

    n: int
    level: float
    pearson: Coefficient | None
    spearman: Coefficient | None
    why: str = ""


def correlation(
    first: NDArray[np.float64], second: NDArray[np.float64], *, level: float = LEVEL
) -> Correlation:
    """Correlate two columns of finite numbers and equal length, with confidence intervals of *level*.

    The intervals are Fisher's: *z* = artanh *r*, standard error 1 / sqrt(n - 3). For Spearman's coefficient,
    the variance is corrected by 1 + r**2 / 2 (Bonett, Wright: Sample size requirements for estimating
    Pearson, Kendall and Spearman correlations, Psychometrika 65, 2000). Both p-values come from Student's *t*
    with n - 2 degrees of freedom.
    """
    n = len(first)
    if why := _undefined_reason(first, second):
        return Correlation(n, level, None, None, why)
    linear, ranked = _r(first, second), _r(_ranks(first), _ranks(second))
    return Correlation(
        n, level, _coefficient(linear, n, level, 1.0), _coefficient(ranked, n, level, 1 + ranked**2 / 2)
    )


def _undefined_reason(first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    if len(first) < LEAST_PAIRS:
        return "too_few"
    return "constant" if any(map(_is_constant, (first, second))) else ""


def _is_constant(column: NDArray[np.float64]) -> bool:
    largest = np.abs(column).max()
    return bool(largest == 0 or np.ptp(column / largest) <= _ROUNDING)


def _r(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return Pearson's coefficient; columns are scaled before their product, as 1e200 squared overflows."""
    x, y = (_unit(column) for column in (first, second))
    return float(np.clip(x @ y, -1.0, 1.0))


def _unit(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the column minus its mean, scaled to a vector of length 1."""
    scaled = column / np.abs(column).max()
    centred: NDArray[np.float64] = scaled - scaled.mean()
    return centred / np.linalg.norm(centred)


def _ranks(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each number, from 1 on; equal numbers share their mean rank."""
    _, groups, counts = np.unique(column, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[groups]
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
