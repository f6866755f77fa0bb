from __future__ import annotations

import math
import statistics

import pytest

from forecasting.base import InvalidNumber
from forecasting.evaluation import metrics
from forecasting.evaluation.metrics import forecast_scores

ACTUAL = [10.0, 20.0, 40.0, 30.0]
MEAN = [12.0, 20.0, 30.0, 33.0]
LOWER = [9.0, 15.0, 25.0, 31.0]
UPPER = [15.0, 25.0, 35.0, 40.0]
LAST_VALUE = [math.nan, 10.0, 20.0, 40.0]


def test_scores_by_hand() -> None:
    record = forecast_scores(ACTUAL, MEAN, LOWER, UPPER, level=0.8, last_value=LAST_VALUE)
    assert record.n == 4
    assert record.mean_absolute_error == pytest.approx((2 + 0 + 10 + 3) / 4)
    assert metrics.root_mean_squared_error(ACTUAL, MEAN) == pytest.approx(math.sqrt((4 + 0 + 100 + 9) / 4))
    assert record.relative_error == pytest.approx((0.2 + 0.0 + 0.25 + 0.1) / 4)
    variation = statistics.pstdev([0.2, 0.0, 0.25, 0.1]) / 0.1375
    assert metrics.relative_error_variation(ACTUAL, MEAN) == pytest.approx(variation)
    assert record.mean_absolute_scaled_error == pytest.approx((0 + 10 + 3) / (10 + 20 + 10))
    assert record.coverage == 0.5
    assert record.winkler_score == pytest.approx((6 + 10 + (10 + 5 / 0.1) + (9 + 1 / 0.1)) / 4)


def test_no_forecasts_have_no_scores() -> None:
    record = forecast_scores([], [], [], [], last_value=[])
    assert record.n == 0
    assert record.mean_absolute_error is record.coverage is record.winkler_score is None
    assert record.relative_error is record.mean_absolute_scaled_error is None


def test_division_by_zero_is_avoided() -> None:
    assert metrics.relative_error([0.0, 2.0], [1.0, 1.0]) == 0.5
    assert metrics.relative_error([0.0], [1.0]) is None
    assert metrics.mean_absolute_scaled_error([5.0, 5.0], [4.0, 4.0], [5.0, 5.0]) is None


def test_the_variation_of_relative_errors_is_their_spread_by_their_mean() -> None:
    assert metrics.relative_error_variation([1.0, 1.0], [1.1, 1.3]) == pytest.approx(0.5)  # 10 and 30 %
    assert metrics.relative_error_variation([1.0, 1.0], [1.0, 1.0]) is None


def test_squares_of_the_largest_numbers_do_not_overflow() -> None:
    actual, mean = [1e300, -1e300, 1e300], [-1e300, 1e300, -1e300]
    assert metrics.root_mean_squared_error(actual, mean) == pytest.approx(2e300)
    assert metrics.relative_error([5e-324, 1e-300], [1e300, 1e300]) == 1e300


def test_a_quantile_loses_more_for_values_on_its_unlikely_side() -> None:
    assert metrics.pinball_loss([10.0], [6.0], 0.9) == pytest.approx(3.6)
    assert metrics.pinball_loss([6.0], [10.0], 0.9) == pytest.approx(0.4)
    assert metrics.pinball_loss([6.0, 10.0], [10.0, 6.0], 0.5) == 2.0


def test_the_last_value_has_a_scaled_error_of_one() -> None:
    assert metrics.mean_absolute_scaled_error(ACTUAL, [0.0, *ACTUAL[:-1]], LAST_VALUE) == 1.0


def test_an_interval_includes_its_ends() -> None:
    assert metrics.coverage([1.0, 2.0], [1.0, 1.0], [2.0, 2.0]) == 1.0


def test_a_wide_interval_scores_worse_and_a_miss_worse_still() -> None:
    narrow, wide, missing = ([4.0], [6.0]), ([1.0], [9.0]), ([6.0], [7.0])
    scores = [metrics.winkler_score([5.0], *interval) for interval in (narrow, wide, missing)]
    assert scores == pytest.approx([2.0, 8.0, 11.0])


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidNumber, match="one length"):
        metrics.mean_absolute_error([1.0], [1.0, 2.0])


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvalidNumber, match="finite"):
        metrics.coverage([math.nan], [0.0], [1.0])
