"""Cases of a parametrised test that are long proofs: marked as nightly, beside cases that always run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def by_night(*values: object) -> ParameterSet:
    """Return the case with these *values*, for ``make nightly`` only."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def some_by_day(cases: Iterable[object], *, every: int, draw: int = 0) -> list[ParameterSet]:
    """Return *cases*; one of *every* is also for ``make test``, others with the next *draw*."""
    return [_case(number + draw, every, case) for number, case in enumerate(cases)]


def mostly_by_night(
    first: Sequence[str], other: Sequence[object], *, every: int, draw: int = 0
) -> list[ParameterSet]:
    """Return all pairs of *first* and *other*; one of *every* is also for ``make test``.

    Each of *first* meets the same share of *other*, and the other way round. In *every* draws, each pair is
    drawn once.
    """
    return [
        _case(row + column + draw, every, one, two)
        for (row, one), (column, two) in itertools.product(enumerate(first), enumerate(other))
    ]


def _case(number: int, every: int, *values: object) -> ParameterSet:
    return by_night(*values) if number % every else pytest.param(*values)
