from __future__ import annotations

import numpy as np
import pytest

from forecasting.learning.level_shift import LevelShift

OLD, NEW = 100.0, 200.0
SAID = np.array([OLD, OLD, NEW])  # two who are slow, one who is quick


def told(*truths: float) -> LevelShift:
    shift = LevelShift()
    for truth in truths:
        shift.update(SAID, OLD, truth, 1.0)
    return shift


def test_a_single_value_far_away_is_no_shift() -> None:
    assert not told(OLD, NEW).is_believed
    assert not told(OLD, NEW, OLD, NEW).is_believed


@pytest.mark.parametrize("new", [NEW, 2.0 * OLD - NEW])
def test_two_values_near_each_other_are_believed_and_who_is_late_sleeps(new: float) -> None:
    shift = told(OLD, new, new + 3.0)
    assert shift.is_believed
    awake = shift.without_late(np.array([OLD, OLD + 0.5 * (new - OLD), new, np.nan]))
    np.testing.assert_array_equal(awake, [np.nan, np.nan, new, np.nan])


def test_two_wild_values_that_have_nothing_in_common_are_no_shift() -> None:
    assert not told(OLD, NEW, 900.0).is_believed


def test_a_value_far_beyond_the_new_level_is_doubted_as_any_wild_one() -> None:
    shift = told(OLD, NEW, NEW, NEW)
    assert not shift.is_doubtful
    shift.update(SAID, NEW, 90.0 * NEW, 1.0)
    assert shift.is_doubtful


def test_where_nobody_has_come_over_all_are_listened_to() -> None:
    said = np.array([OLD, np.nan, OLD + 1.0])
    np.testing.assert_array_equal(told(OLD, NEW, NEW).without_late(said), said)


def test_who_comes_over_is_listened_to_and_when_all_have_it_is_over() -> None:
    shift = told(OLD, NEW, NEW)
    assert np.isfinite(shift.without_late(np.array([OLD + 95.0, OLD, NEW]))[0])
    shift.update(np.array([NEW, OLD + 95.0, NEW]), NEW, NEW, 1.0)
    assert not shift.is_believed


def test_a_truth_that_is_back_ends_it() -> None:
    assert not told(OLD, NEW, NEW, OLD).is_believed


def test_where_two_have_misled_only_three_are_believed() -> None:
    misled = (OLD, NEW, NEW, OLD)
    assert not told(*misled, NEW, NEW).is_believed
    assert told(*misled, NEW, NEW, NEW).is_believed
    assert told(*misled, NEW, NEW, NEW, OLD, NEW, NEW).is_believed  # right as often as wrong


def test_where_levels_have_shifted_twice_the_next_one_is_believed_at_once() -> None:
    shifted = (NEW, NEW, NEW, OLD)
    assert not told(*shifted, NEW).is_believed
    assert told(*shifted, *shifted, NEW).is_believed
