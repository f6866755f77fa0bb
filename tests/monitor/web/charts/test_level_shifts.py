"""Positions at which the level of values changes."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.web.charts.level_shifts import level_shifts

_NOISE = np.random.default_rng(7).normal(0.0, 0.5, 200)


@pytest.mark.parametrize(
    ("values", "positions"),
    [
        ([], []),
        ([1.0] * 100, []),
        ([1.0] * 50 + [2.0] * 50, [50]),
        ([10.0] * 50 + [10.5] * 50, []),  # less than a tenth
        ([1.0] * 5 + [2.0] * 5, []),  # too few
        ((20 + _NOISE).tolist(), []),
        ((20 + _NOISE).tolist() + (26 + _NOISE).tolist(), [200]),
        ((20 + _NOISE).tolist() + (26 + _NOISE).tolist() + (14 + _NOISE).tolist(), [200, 400]),
        ([*(20 + _NOISE).tolist()[:100], 500.0, *(20 + _NOISE).tolist()[100:]], []),  # an outlier
    ],
)
def test_a_new_level_begins_where_both_sides_differ_clearly(
    values: list[float], positions: list[int]
) -> None:
    found = level_shifts(values)
    assert len(found) == len(positions)
    assert all(abs(one - other) <= 1 for one, other in zip(found, positions, strict=True))
