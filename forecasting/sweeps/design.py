"""The linear model of a sweep: a column for each effect of a factor, and of a pair of factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from forecasting.reading.sweeps import Levels

Matrix = NDArray[np.float64]
Term = tuple[str, ...]  # one factor, or two

_SMALLEST_SINGULAR = 1e-9  # relative: smaller means that the cells do not tell the effects of a term apart


@dataclass(frozen=True)
class Design:
    """The model matrix of cells. *columns* has the columns of each term; column 0 is the mean.

    *levels* has the levels of each factor. The effects of a factor add up to 0 over its levels, and those of
    a pair over the levels of either factor, so an effect does not depend on how often a level was measured.
    """

    levels: Mapping[str, Sequence[str]]
    matrix: Matrix  # cells x columns
    columns: Mapping[Term, slice]
    left_out: Sequence[Term]  # pairs that the cells do not tell apart from other terms

    def rows(self, combinations_of_levels: Sequence[Levels]) -> Matrix:
        """Return the row of the model matrix of each combination of levels."""
        return np.column_stack(
            [
                np.ones(len(combinations_of_levels)),
                *(_block(term, combinations_of_levels, self.levels) for term in self.columns),
            ]
        )


def design_of(levels: Mapping[str, Sequence[str]], cells: Sequence[Levels]) -> Design:
    """Return the design of *cells* with each factor, and each pair of factors that can be told apart.

    Pairs that leave no cell to estimate the error from are left out, too.
    """
    factors: list[Term] = [(factor,) for factor in levels]
    blocks: list[Matrix] = [np.ones((len(cells), 1))]
    columns: dict[Term, slice] = {}
    left_out: list[Term] = []
    basis = blocks[0] / np.sqrt(len(cells))
    for term in [*factors, *combinations(levels, 2)]:
        block = _block(term, cells, levels)
        new = _independent_part(block, basis)
        if new.shape[1] < block.shape[1] or basis.shape[1] + new.shape[1] > len(cells):
            left_out.append(term)
            continue
        start = sum(part.shape[1] for part in blocks)
        columns[term] = slice(start, start + block.shape[1])
        blocks.append(block)
        basis = np.column_stack([basis, new])
    return Design(levels, np.column_stack(blocks), columns, left_out)


def _independent_part(block: Matrix, basis: Matrix) -> Matrix:
    """Return an orthonormal basis of what *block* adds to the orthonormal columns of *basis*."""
    rest = block - basis @ (basis.T @ block)
    rest -= basis @ (basis.T @ rest)  # again: the first difference has lost digits
    left, singular, _ = np.linalg.svd(rest, full_matrices=False)
    return np.asarray(left[:, singular > _SMALLEST_SINGULAR * np.linalg.norm(block)], dtype=np.float64)


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
    for cell in product(*own.values()):
        yield cell, _block(term, [cell], own)[0]
