from __future__ import annotations

import numpy as np
import pytest

from forecasting.learning.fading import FadingValues

BY_RANK = np.array([(1.0, 0.0)])
BY_TIME = np.array([(0.0, 1.0)])


def after(*runs: tuple[float, float, float]) -> FadingValues:
    """Return the values of *runs*: (start, end, value)."""
    recent = FadingValues()
    for run in runs:
        recent.add(*run)
    return recent


def test_by_hand_weights_fall_with_the_rank_of_the_value_known_last() -> None:
    recent = after((0.0, 1.0, 30.0), (0.0, 2.0, 10.0), (0.0, 3.0, 20.0))
    values, (weights,), _ = recent.weighted(10.0, BY_RANK)
    assert values.tolist() == [10.0, 20.0, 30.0]
    assert weights == pytest.approx([1 / 2, 1.0, 1 / 3])


def test_by_hand_weights_fall_with_the_time_since_a_value_was_known() -> None:
    _, (weights,), _ = after((0.0, 0.0, 1.0), (0.0, 60.0, 2.0)).weighted(90.0, BY_TIME)
    assert weights == pytest.approx([1 / 100, 1 / 40])  # ten seconds are added to each age


def test_a_run_counts_more_by_the_share_of_the_time_since_its_start_for_which_it_ran() -> None:
    recent = after((0.0, 30.0, 30.0), (0.0, 90.0, 90.0))
    _, (by_age,), (longer,) = recent.weighted(110.0, BY_RANK)
    assert longer / by_age == pytest.approx([1.0 + 30.0 / 120.0, 1.0 + 90.0 / 120.0])


def test_only_the_last_values_count() -> None:
    recent = FadingValues(3)
    for value in range(8):
        recent.add(float(value), value + 0.5, float(value))
    values, (weights,), _ = recent.weighted(10.0, BY_RANK)
    assert values.tolist() == [5.0, 6.0, 7.0]
    assert weights == pytest.approx([1 / 3, 1 / 2, 1.0])
