from __future__ import annotations

import numpy as np
import pytest

from forecasting.learning.level_shift import LevelShift

OLD, NEW = 100.0, 200.0
FORECASTS = np.array([OLD, OLD, NEW])  # two slow experts, a quick one


def trained(*actuals: float) -> LevelShift:
    shift = LevelShift()
    for actual in actuals:
        shift.update(FORECASTS, OLD, actual, 1.0)
    return shift


def test_a_single_value_far_away_is_no_shift() -> None:
    assert not trained(OLD, NEW).is_believed
    assert not trained(OLD, NEW, OLD, NEW).is_believed


@pytest.mark.parametrize("new", [NEW, 2.0 * OLD - NEW])
def test_two_values_near_each_other_are_a_shift_and_late_experts_are_muted(new: float) -> None:
    shift = trained(OLD, new, new + 3.0)
    assert shift.is_believed
    awake = shift.without_late(np.array([OLD, OLD + 0.5 * (new - OLD), new, np.nan]))
    np.testing.assert_array_equal(awake, [np.nan, np.nan, new, np.nan])


def test_two_outliers_in_different_places_are_no_shift() -> None:
    assert not trained(OLD, NEW, 900.0).is_believed


def test_a_value_far_beyond_the_new_level_is_doubted_as_any_outlier() -> None:
    shift = trained(OLD, NEW, NEW, NEW)
    assert not shift.is_doubtful
    shift.update(FORECASTS, NEW, 90.0 * NEW, 1.0)
    assert shift.is_doubtful


def test_if_all_experts_are_late_none_is_muted() -> None:
    forecasts = np.array([OLD, np.nan, OLD + 1.0])
    np.testing.assert_array_equal(trained(OLD, NEW, NEW).without_late(forecasts), forecasts)


def test_an_expert_at_the_new_level_is_not_muted_and_the_shift_ends_when_all_are_there() -> None:
    shift = trained(OLD, NEW, NEW)
    assert np.isfinite(shift.without_late(np.array([OLD + 95.0, OLD, NEW]))[0])
    shift.update(np.array([NEW, OLD + 95.0, NEW]), NEW, NEW, 1.0)
    assert not shift.is_believed


def test_a_value_back_at_the_old_level_ends_the_shift() -> None:
    assert not trained(OLD, NEW, NEW, OLD).is_believed


def test_after_pairs_of_outliers_only_three_values_are_a_shift() -> None:
    misled = (OLD, NEW, NEW, OLD)
    assert not trained(*misled, NEW, NEW).is_believed
    assert trained(*misled, NEW, NEW, NEW).is_believed
    assert trained(*misled, NEW, NEW, NEW, OLD, NEW, NEW).is_believed  # right as often as wrong


def test_after_two_lasting_shifts_the_next_one_is_believed_at_once() -> None:
    shifted = (NEW, NEW, NEW, OLD)
    assert not trained(*shifted, NEW).is_believed
    assert trained(*shifted, *shifted, NEW).is_believed
