"""The cases of long tables that run by day: others each day, and all of them by night.

``GRIDCAST_ACCESS_SEED`` repeats a draw: the number of the day, which a test that fails says.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

SEED = int(os.environ.get("GRIDCAST_ACCESS_SEED") or datetime.now(UTC).toordinal())
DRAW = f"GRIDCAST_ACCESS_SEED={SEED} repeats the draw"


def drawn(first: Sequence[str], other: Sequence[object], *, every: int) -> list[ParameterSet]:
    """Return all pairs of *first* and *other*; one of *every* is also for ``make test``.

    Each of *first* meets the same share of *other* there, and the other way round. In *every* days each pair
    is drawn once.
    """
    pairs = itertools.product(enumerate(first), enumerate(other))
    return [_case((one, two), number=row + column, every=every) for (row, one), (column, two) in pairs]


def sampled(cases: Iterable[object], *, every: int) -> list[ParameterSet]:
    """Return *cases*; one of *every* is also for ``make test``."""
    return [_case((case,), number=number, every=every) for number, case in enumerate(cases)]


def _case(values: Sequence[object], *, number: int, every: int) -> ParameterSet:
    is_by_day = (number + SEED) % every == 0
    return pytest.param(*values, marks=[] if is_by_day else pytest.mark.nightly)
