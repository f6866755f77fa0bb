from __future__ import annotations

import math

import numpy as np
import pytest

from forecasting.sweeps.passes import first_pass, is_steady, location, outlier_share, outliers


def test_four_values_have_no_outlier_however_far_one_is() -> None:
    assert not outliers(np.array([1.0, 1.0, 1.0, 1e6])).any()


def test_of_five_values_the_one_that_deviates_by_more_than_1_65_deviations_is_flagged() -> None:
    assert outliers(np.array([10.0, 11.0, 9.0, 10.0, 40.0])).tolist() == [False, False, False, False, True]
    assert not outliers(np.array([10.0, 11.0, 9.0, 10.0, 12.0])).any()


def test_equal_values_have_no_outlier() -> None:
    assert not outliers(np.full(6, 3.0)).any()


@pytest.mark.parametrize(("n", "share"), [(4, 0.0), (5, 0.027), (6, 0.033), (8, 0.031)])
def test_the_share_of_noise_that_is_flagged_is_the_published_one(n: int, share: float) -> None:
    assert outlier_share(n) == pytest.approx(share, abs=0.002)


def test_a_first_pass_that_takes_twice_as_long_is_told_from_the_others() -> None:
    effect = first_pass([[20.0, 10.0, 10.1], [10.0, 5.0, 5.1], [4.1, 2.0, 2.1]])
    assert effect is not None
    assert effect.n == 3
    assert effect.low < effect.ratio < effect.high
    assert effect.ratio == pytest.approx(2.0, rel=0.03)
    assert effect.p_value < 0.01


def test_one_combination_does_not_tell_whether_the_first_pass_is_different() -> None:
    assert first_pass([[20.0, 10.0], [7.0]]) is None


@pytest.mark.parametrize(
    ("values", "steady"),
    [
        ([50.0, 10.0, 10.0, 10.1, 9.9, 10.0], True),  # only the last five count
        ([10.0, 10.0, 10.1, 9.9], False),
        ([10.0, 10.0, 10.0, 10.0, 12.6], False),  # the range is above a fifth of the mean
        ([9.4, 9.7, 10.0, 10.3, 10.6], False),  # a slope of 12 %
        ([9.8, 9.9, 10.0, 10.1, 10.2], True),
    ],
)
def test_the_steady_state_needs_five_values_that_neither_scatter_nor_drift(
    values: list[float], steady: bool
) -> None:
    assert is_steady(values) is steady


def test_the_location_is_hardly_moved_by_one_wild_value() -> None:
    assert location(np.array([9.0, 10.0, 11.0, 10.0, 1e6])) == pytest.approx(10.25, abs=0.5)
    assert location(np.array([7.0])) == 7.0
    assert math.isclose(location(np.array([1.0, 2.0, 3.0])), 2.0)
