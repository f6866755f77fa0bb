"""Cases of a parametrised test that are long proofs: marked as nightly, beside cases that always run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def by_night(*values: object) -> ParameterSet:
    """Return the case with these *values*, for ``make nightly`` only."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def mostly_by_night(first: Sequence[str], other: Sequence[str], *, every: int) -> list[ParameterSet]:
    """Return all pairs of *first* and *other*; one of *every* is also for ``make test``.

    Each of *first* meets the same share of *other*, and the other way round.
    """
    return [
        pytest.param(one, two, marks=[] if (row + column) % every == 0 else pytest.mark.nightly)
        for (row, one), (column, two) in itertools.product(enumerate(first), enumerate(other))
    ]
