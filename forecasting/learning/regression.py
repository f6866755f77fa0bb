"""Regressions of one number on another number, or on several numbers; they learn pair by pair."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(slots=True)
class RidgeSlope:
    """The regression of ``Ridge`` for a single number."""

    penalty: float
    decay: float
    reach: float
    _square: float = field(default=0.0, init=False)
    _product: float = field(default=0.0, init=False)

    def expected(self, number: float) -> float:
        """Return the prediction of the actual number from *number*."""
        return number * self._product / (self._square + self.penalty)

    def learn(self, number: float, actual: float) -> None:
        """Learn the pair of *number* and *actual*."""
        weight = self.reach / max(abs(actual - self.expected(number)), self.reach)
        self._square = self.decay * self._square + weight * number * number
        self._product = self.decay * self._product + weight * number * actual


@dataclass(slots=True)
class Ridge:
    """Ridge regression with forgetting, through the origin, on several standardised numbers.

    The coefficients are fitted by least squares; each new pair multiplies the weights of the older pairs by
    *decay*. The *penalty*, in pairs, does not decay, so a number that no longer occurs loses its influence
    (Hoerl, Kennard, "Ridge regression", Technometrics 12, 1970; recursive least squares with exponential
    forgetting). A pair whose error is above *reach* gets less weight, so that it pulls like a pair with an
    error of *reach* (Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics
    35, 1964; in one pass).
    """

    penalty: float
    decay: float
    reach: float
    coefficients: Vector = field(default_factory=lambda: np.zeros(0), init=False)
    _squares: Vector = field(default_factory=lambda: np.zeros((0, 0)), init=False)
    _products: Vector = field(default_factory=lambda: np.zeros(0), init=False)

    def expected(self, numbers: Vector) -> float:
        """Return the prediction from *numbers*; ignore numbers at the end that no learned pair has."""
        width = len(self.coefficients)
        return float(np.dot(numbers[:width], self.coefficients))

    def learn(self, numbers: Vector, actual: float) -> None:
        """Learn the pair of *numbers* and *actual*; later pairs may have additional numbers at the end."""
        if len(numbers) > len(self.coefficients):
            self._widen(len(numbers))
        weighted = numbers * (self.reach / max(abs(actual - self.expected(numbers)), self.reach))
        self._squares *= self.decay
        self._squares += weighted[:, None] * numbers
        self._products *= self.decay
        self._products += weighted * actual
        penalised = self._squares.copy()
        penalised.flat[:: len(numbers) + 1] += self.penalty
        self.coefficients = np.linalg.solve(penalised, self._products).astype(np.float64, copy=False)

    def _widen(self, width: int) -> None:
        before = len(self.coefficients)
        squares: Vector = np.zeros((width, width))
        squares[:before, :before] = self._squares
        self._squares = squares
        self._products = np.concatenate([self._products, np.zeros(width - before)])
        self.coefficients = np.concatenate([self.coefficients, np.zeros(width - before)])


@dataclass(slots=True)
class LeastSquaresLine:
    """Ordinary least squares of y on x over all pairs. The state is a few sums, not the pairs."""

    n: int = field(default=0, init=False)
    _x: float = field(default=0.0, init=False)
    _y: float = field(default=0.0, init=False)
    _square: float = field(default=0.0, init=False)
    _product: float = field(default=0.0, init=False)

    def learn(self, x: float, y: float) -> None:
        """Learn a pair; ignore it if the sums would overflow."""
        off = x - self._x
        square, product = off * (off / (self.n + 1) * self.n), off * ((y - self._y) / (self.n + 1) * self.n)
        if not (math.isfinite(self._square + square) and math.isfinite(self._product + product)):
            return
        self.n += 1
        self._x += off / self.n
        self._y += (y - self._y) / self.n
        self._square += square
        self._product += product

    def at(self, x: float, *, penalty: float = 0.0) -> float:
        """Return the height of the line at *x*.

        If all learned x are equal, the height is the mean of y. Without pairs it is 0. A *penalty* flattens
        the slope by the factor n / (n + *penalty*) for n pairs.
        """
        if not self._square:
            return self._y
        return self._y + (x - self._x) * (self._product / self._square) * (self.n / (self.n + penalty))


def least_squares(pairs: Sequence[tuple[float, float]], x: float) -> float:
    """Return the height at *x* of the least-squares line through *pairs*, which must not be empty."""
    line = LeastSquaresLine()
    for pair in pairs:
        line.learn(*pair)
    return line.at(x)


@cache
def _neighbours(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(count, 1)
    return first, second


def theil_sen(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return (height at 0, slope) of the Theil-Sen line through *pairs*.

    The slope is the median of the slopes between all pairs; the height is the median of y - slope * x. Both
    are NaN if numbers overflow. Up to 29 % of the pairs may be arbitrarily wrong. Sources: Theil, "A
    rank-invariant method of linear and polynomial regression analysis", 1950; Sen, "Estimates of the
    regression coefficient based on Kendall's tau", JASA 63 (1968).
    """
    xs, ys = np.array(pairs).T
    first, second = _neighbours(len(xs))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller handles NaN
        across, up = xs[second] - xs[first], ys[second] - ys[first]
        apart = across != 0.0
        slope = _median(up[apart] / across[apart]) if apart.any() else 0.0
        return _median(ys - slope * xs), slope


def _median(numbers: Vector) -> float:
    half = len(numbers) // 2
    if len(numbers) % 2:
        return float(np.partition(numbers, half)[half])
    parted = np.partition(numbers, (half - 1, half))
    return float((parted[half - 1] + parted[half]) / 2.0)


def same_quantile(pairs: Sequence[tuple[float, float]], x: float) -> float:
    """Map *x* to the second number of *pairs* that has the same rank as *x* among the first numbers.

    The result is interpolated between neighbours and limited to the range of the second numbers. If several
    first numbers equal *x*, their middle rank counts. Known as quantile mapping (Panofsky, Brier, "Some
    applications of statistics to meteorology", 1958).
    """
    xs, ys = (sorted(column) for column in zip(*pairs, strict=True))
    below, upto = bisect_left(xs, x), bisect_right(xs, x)
    if upto > below:
        place = (below + upto - 1) / 2.0
    elif not 0 < below < len(xs):
        place = 0.0 if below == 0 else len(xs) - 1.0
    else:
        place = below - 1 + (x - xs[below - 1]) / (xs[below] - xs[below - 1])
    lower = int(place)
    upper = min(lower + 1, len(ys) - 1)
    return float(ys[lower] + (place - lower) * (ys[upper] - ys[lower]))
