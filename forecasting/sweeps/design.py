"""The linear model of a sweep: a column for each effect of a factor, and of a pair of factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from forecasting.base import ForecastingError
from forecasting.reading.sweeps import Levels

Matrix = NDArray[np.float64]
Term = tuple[str, ...]  # one factor, or two

_SMALLEST_PART = 1e-9  # relative: smaller means that the cells do not tell the effects of a term apart
_MOST_COLUMNS = 1_000  # limits the time for a model,
_MOST_NUMBERS = 20_000_000  # and the memory: cells x columns


class TooManyLevels(ForecastingError):
    """The factors of a sweep have more levels than can be estimated in reasonable time and memory."""


@dataclass(frozen=True)
class Design:
    """The model matrix of cells. *columns* has the columns of each term; column 0 is the mean.

    *levels* has the levels of each factor. The effects of a factor add up to 0 over its levels, and those of
    a pair over the levels of either factor, so an effect does not depend on how often a level was measured.
    """

    levels: Mapping[str, Sequence[str]]
    matrix: Matrix  # cells x columns
    columns: Mapping[Term, slice]
    left_out: Sequence[Term]  # not told apart from other terms, or too many levels for the cells

    def rows(self, combinations_of_levels: Sequence[Levels]) -> Matrix:
        """Return the row of the model matrix of each combination of levels."""
        return np.column_stack(
            [
                np.ones(len(combinations_of_levels)),
                *(_block(term, combinations_of_levels, self.levels) for term in self.columns),
            ]
        )


def design_of(levels: Mapping[str, Sequence[str]], cells: Sequence[Levels], pair_columns: int) -> Design:
    """Return the design of *cells* with each factor, and each pair of factors that can be told apart.

    Pairs are left out that would give the design more than *pair_columns* columns.

    Raises:
        TooManyLevels: the factors alone have too many levels.
    """
    most_columns = _most_columns(levels, len(cells))
    blocks: list[Matrix] = [np.ones((len(cells), 1))]
    columns: dict[Term, slice] = {}
    left_out: list[Term] = []
    basis = blocks[0] / np.sqrt(len(cells))
    factors: list[Term] = [(factor,) for factor in levels]
    for term in [*factors, *combinations(levels, 2)]:
        start = basis.shape[1]
        stop = start + math.prod(len(levels[factor]) - 1 for factor in term)
        if stop <= min(most_columns, len(cells) if len(term) == 1 else pair_columns):
            block = _block(term, cells, levels)
            new = _independent_part(block, basis)
            if new is not None:
                columns[term] = slice(start, stop)
                blocks.append(block)
                basis = np.column_stack([basis, new])
                continue
        left_out.append(term)
    return Design(levels, np.column_stack(blocks), columns, left_out)


def _most_columns(levels: Mapping[str, Sequence[str]], cells: int) -> int:
    """Return how many columns a design may have. Raises TooManyLevels if the factors alone need more."""
    most = min(_MOST_COLUMNS, _MOST_NUMBERS // cells)
    needed = 1 + sum(len(names) - 1 for names in levels.values())
    if needed > most:
        factor = max(levels, key=lambda name: len(levels[name]))
        raise TooManyLevels(
            f"{needed - 1 + len(levels)} levels are too many for a model of {cells} combinations; {factor} "
            f"has the most, {len(levels[factor])}: put its levels into groups, or leave the column out"
        )
    return most


def _independent_part(block: Matrix, basis: Matrix) -> Matrix | None:
    """Return an orthonormal basis of what *block* adds to the orthonormal columns of *basis*; None if some of
    its columns add nothing."""
    rest = block - basis @ (basis.T @ block)
    rest -= basis @ (basis.T @ rest)  # again: the first difference has lost digits
    orthonormal, triangle = np.linalg.qr(rest)
    parts = np.abs(np.diag(triangle))  # of each column, beyond the ones before it
    return orthonormal if (parts > _SMALLEST_PART * np.linalg.norm(block)).all() else None


def _block(term: Term, cells: Sequence[Levels], levels: Mapping[str, Sequence[str]]) -> Matrix:
    """Return the columns of *term*: of a pair, the products of the columns of its factors."""
    block = np.ones((len(cells), 1))
    for factor in term:
        place = list(levels).index(factor)
        codes = sum_to_zero(len(levels[factor]))
        number = {level: row for row, level in enumerate(levels[factor])}
        of_factor = codes[[number[cell[place]] for cell in cells]]
        block = (block[:, :, None] * of_factor[:, None, :]).reshape(len(cells), -1)
    return block


def sum_to_zero(n: int) -> Matrix:
    """Return the codes of *n* levels, *n* - 1 columns: the last level is minus the sum of the others."""
    return np.vstack([np.eye(n - 1), -np.ones(n - 1)])


def contrasts(
    term: Term, levels: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Levels, NDArray[np.float64]]]:
    """Yield the levels of each effect of *term*, and its weights on the coefficients of the term."""
    own = {factor: levels[factor] for factor in term}
    cells = list(product(*own.values()))
    yield from zip(cells, _block(term, cells, own), strict=True)
