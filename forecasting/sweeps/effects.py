"""Which factors of a sweep matter, by how much, and which levels are best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Literal

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from forecasting.base import ForecastingError
from forecasting.reading.sweeps import Levels, Sweep, SweepValue
from forecasting.sweeps.design import Design, Matrix, Term, contrasts, design_of
from forecasting.sweeps.passes import (
    ROUNDS,
    PassEffect,
    first_pass,
    is_steady,
    location,
    outlier_share,
    outliers,
)

CONFIDENCE = 0.95
FALSE_DISCOVERIES = 0.05  # at most this share of the claimed terms has no effect
_FEWEST_DEGREES = 10  # of freedom between cells: below, the error within the cells is used as well
_MOST_COMBINATIONS = 1_000_000

Better = Literal["higher", "lower"]


class TooFewCells(ForecastingError):
    """A sweep has too few combinations of levels, or passes, to estimate an effect and its error."""


@dataclass(frozen=True)
class LevelEffect:
    """The ratio of the values with these *levels* to the mean over all levels, with its interval.

    For a pair of factors: to the product of the effects of the two.
    """

    levels: Levels
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class TermEffect:
    """The effect of a factor, or of a pair of factors beyond the effects of the two.

    *q_value* is the p value of the F test, adjusted for all terms (Benjamini and Hochberg). *size* is the
    ratio of the largest to the smallest effect. *best* are the levels of a factor that cannot be told from
    its best.
    """

    term: Term
    size: float
    p_value: float
    q_value: float
    levels: Sequence[LevelEffect]
    best: Sequence[str]

    @property
    def is_claimed(self) -> bool:
        return self.q_value <= FALSE_DISCOVERIES


@dataclass(frozen=True)
class FlaggedValue:
    """A *value* that stands out among those of its combination of *levels*."""

    pass_number: int
    levels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Flags:
    """How many of *values* Chauvenet's criterion flags, how many it would flag in noise alone, and which."""

    values: int
    flagged: int
    expected: float
    flagged_values: Sequence[FlaggedValue]


@dataclass(frozen=True)
class Choice:
    """The combination of levels with the best value by the model. *value* is what the model expects there."""

    levels: Mapping[str, str]
    value: float
    over_mean: float  # ratio to the mean of all combinations
    is_measured: bool


@dataclass(frozen=True)
class SweepEffects:
    cells: int
    possible_cells: int
    passes: int
    first_pass: PassEffect | None
    flags: Flags
    unsteady_cells: int | None  # None: no cell has enough passes to tell
    noise: float | None  # of one value: relative standard deviation within the cells; None: no cell has two
    terms: Sequence[TermEffect]
    left_out: Sequence[Term]
    choice: Choice


def effects_of(sweep: Sweep, better: Better = "higher") -> SweepEffects:
    """Estimate the effects of all factors and pairs of factors of *sweep*; values act by their logarithms.

    The first pass is compared with the others and set aside. A cell is represented by the Hodges-Lehmann
    location of its other values, so that flagged values stay but have little influence.

    Pairs of factors whose effects would leave nothing to estimate the error from are left out.

    Raises:
        TooFewCells: no error can be estimated.
        TooManyLevels: the factors have too many levels.
    """
    later = {
        levels: [measured for measured in values if measured.number > 1]
        for levels, values in sweep.cells.items()
        if any(measured.number > 1 for measured in values)
    }
    cells = {levels: np.array([measured.value for measured in values]) for levels, values in later.items()}
    levels = {factor: sweep.levels(factor) for factor in sweep.factors}
    logarithms = [np.log(values) for values in cells.values()]
    is_repeated = any(len(values) > 1 for values in logarithms)
    design = design_of(levels, list(cells), len(cells) if is_repeated else len(cells) - 1)
    fit = _fit(design, logarithms)
    sign = 1.0 if better == "higher" else -1.0
    return SweepEffects(
        cells=len(cells),
        possible_cells=math.prod(len(names) for names in levels.values()),
        passes=max(map(len, sweep.cells.values())),
        first_pass=first_pass(_with_first_pass(sweep)),
        flags=_flags(sweep.factors, later),
        unsteady_cells=_unsteady(list(cells.values())),
        noise=math.sqrt(_within(logarithms)[0]) if is_repeated else None,
        terms=_terms(design, fit, sign),
        left_out=design.left_out,
        choice=_choice(design, fit, sign, cells),
    )


@dataclass(frozen=True)
class _SweepFit:
    coefficients: NDArray[np.float64]
    covariance: Matrix
    degrees: int  # of freedom of the error


def _fit(design: Design, logarithms: Sequence[NDArray[np.float64]]) -> _SweepFit:
    """Fit the locations of cells by least squares.

    Effects of three and more factors are part of the error, as the residuals of cells contain them. If
    fewer than ten degrees of freedom are left between cells, the error within the cells is pooled with it.
    """
    targets = np.array([location(values) for values in logarithms])
    inverse = np.linalg.inv(design.matrix.T @ design.matrix)
    coefficients = inverse @ (design.matrix.T @ targets)
    residuals = targets - design.matrix @ coefficients
    squares, degrees = float(residuals @ residuals), len(targets) - design.matrix.shape[1]
    if degrees < _FEWEST_DEGREES:
        variance, within_degrees = _within(logarithms)
        mean_inverse = float(np.mean([1.0 / len(values) for values in logarithms]))
        squares, degrees = squares + within_degrees * variance * mean_inverse, degrees + within_degrees
    if degrees < 1:
        raise TooFewCells(
            f"{len(targets)} combinations of levels, each measured once after pass 1, leave nothing to "
            "estimate the error from: measure more combinations or more passes"
        )
    return _SweepFit(coefficients, inverse * squares / degrees, degrees)


def _within(logarithms: Sequence[NDArray[np.float64]]) -> tuple[float, int]:
    """Return the variance of values within their cells, and its degrees of freedom."""
    degrees = sum(len(values) - 1 for values in logarithms)
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in logarithms)
    return (squares / degrees if degrees else 0.0), degrees


def _terms(design: Design, fit: _SweepFit, sign: float) -> list[TermEffect]:
    p_values = [_f_test(fit, columns) for columns in design.columns.values()]
    q_values = _q_values(p_values)
    terms = []
    for (term, columns), p_value, q_value in zip(design.columns.items(), p_values, q_values, strict=True):
        levels = list(_level_effects(design, fit, term, columns))
        ratios = [level.ratio for level in levels]
        best = _best(design, fit, term, columns, sign) if len(term) == 1 else ()
        terms.append(TermEffect(term, max(ratios) / min(ratios), p_value, float(q_value), levels, best))
    return sorted(terms, key=lambda term: (len(term.term), -term.size))


def _f_test(fit: _SweepFit, columns: slice) -> float:
    """Return the probability of coefficients this far from 0 by chance."""
    coefficients, covariance = fit.coefficients[columns], fit.covariance[columns, columns]
    if not covariance.any():  # values without any noise
        return float(not coefficients.any())
    statistic = float(coefficients @ np.linalg.solve(covariance, coefficients)) / len(coefficients)
    return float(scipy.special.fdtrc(len(coefficients), fit.degrees, statistic))


def _q_values(p_values: Sequence[float]) -> list[float]:
    """Return for each test the share of false discoveries among those with at most its *p_values*.

    Source: Y. Benjamini, Y. Hochberg, Journal of the Royal Statistical Society B 57 (1995), p. 289.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)[::-1]
    shares = p[order] * len(p) / np.arange(len(p), 0, -1)
    q = np.empty(len(p))
    q[order] = np.minimum.accumulate(shares)
    return [float(share) for share in np.minimum(q, 1.0)]


def _level_effects(design: Design, fit: _SweepFit, term: Term, columns: slice) -> list[LevelEffect]:
    reach = float(scipy.special.stdtrit(fit.degrees, (1 + CONFIDENCE) / 2))
    effects = []
    for levels, weights in contrasts(term, design.levels):
        estimate = float(weights @ fit.coefficients[columns])
        error = math.sqrt(max(float(weights @ fit.covariance[columns, columns] @ weights), 0.0))
        ratio, low, high = np.exp([estimate, estimate - reach * error, estimate + reach * error])
        effects.append(LevelEffect(levels, float(ratio), float(low), float(high)))
    return effects


def _best(design: Design, fit: _SweepFit, term: Term, columns: slice, sign: float) -> tuple[str, ...]:
    """Return the best level of a factor and those that cannot be told from it, the best first.

    Source: J. C. Hsu, Multiple Comparisons (1996), comparisons with the best; here with Bonferroni's bound.
    """
    pairs = [(levels[0], weights) for levels, weights in contrasts(term, design.levels)]
    estimates = {level: sign * float(weights @ fit.coefficients[columns]) for level, weights in pairs}
    first = max(estimates, key=estimates.__getitem__)
    best_weights = dict(pairs)[first]
    reach = float(scipy.special.stdtrit(fit.degrees, 1 - (1 - CONFIDENCE) / max(len(pairs) - 1, 1)))

    def can_be_best(level: str, weights: NDArray[np.float64]) -> bool:
        difference = weights - best_weights
        error = math.sqrt(max(float(difference @ fit.covariance[columns, columns] @ difference), 0.0))
        return estimates[first] - estimates[level] <= reach * error

    chosen = [level for level, weights in pairs if can_be_best(level, weights)]
    return tuple(sorted(chosen, key=lambda level: -estimates[level]))


def _choice(
    design: Design, fit: _SweepFit, sign: float, cells: Mapping[Levels, NDArray[np.float64]]
) -> Choice:
    """Return the best combination of all levels; of the measured ones if there are over a million."""
    possible = math.prod(len(names) for names in design.levels.values())
    candidates = list(product(*design.levels.values())) if possible <= _MOST_COMBINATIONS else list(cells)
    best, best_value, remaining = candidates[0], -math.inf, iter(candidates)
    while batch := list(islice(remaining, 10_000)):
        expected = sign * (design.rows(batch) @ fit.coefficients)
        place = int(expected.argmax())
        if expected[place] > best_value:
            best, best_value = batch[place], float(expected[place])
    logarithm = sign * best_value
    return Choice(
        levels=dict(zip(design.levels, best, strict=True)),
        value=math.exp(logarithm),
        over_mean=math.exp(logarithm - float(fit.coefficients[0])),
        is_measured=best in cells,
    )


def _with_first_pass(sweep: Sweep) -> list[list[float]]:
    return [
        [measured.value for measured in values] for values in sweep.cells.values() if values[0].number == 1
    ]


def _flags(factors: Sequence[str], cells: Mapping[Levels, Sequence[SweepValue]]) -> Flags:
    sizes = [len(values) for values in cells.values()]
    shares = {size: outlier_share(size) for size in set(sizes)}
    flagged = [
        FlaggedValue(measured.number, dict(zip(factors, levels, strict=True)), measured.value)
        for levels, values in cells.items()
        for measured, is_flagged in zip(
            values, outliers(np.array([measured.value for measured in values])), strict=True
        )
        if is_flagged
    ]
    return Flags(
        values=sum(sizes),
        flagged=len(flagged),
        expected=sum(shares[size] * size for size in sizes),
        flagged_values=flagged,
    )


def _unsteady(cells: Sequence[NDArray[np.float64]]) -> int | None:
    long_enough = [values for values in cells if len(values) >= ROUNDS]
    return sum(not is_steady(values.tolist()) for values in long_enough) if long_enough else None
