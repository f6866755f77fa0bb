from __future__ import annotations

import math
import statistics

import pytest

from forecasting.base import InvalidNumber
from forecasting.evaluation import metrics
from forecasting.evaluation.metrics import track_record

TRUTH = [10.0, 20.0, 40.0, 30.0]
MEAN = [12.0, 20.0, 30.0, 33.0]
LOWER = [9.0, 15.0, 25.0, 31.0]
UPPER = [15.0, 25.0, 35.0, 40.0]


def test_a_track_record_by_hand() -> None:
    record = track_record(TRUTH, MEAN, LOWER, UPPER, level=0.8)
    assert (record.n, record.level) == (4, 0.8)
    assert record.mean_absolute_error == pytest.approx((2 + 0 + 10 + 3) / 4)
    assert record.root_mean_squared_error == pytest.approx(math.sqrt((4 + 0 + 100 + 9) / 4))
    assert record.relative_error == pytest.approx((0.2 + 0.0 + 0.25 + 0.1) / 4)
    assert record.relative_error_variation == pytest.approx(statistics.pstdev([0.2, 0.0, 0.25, 0.1]) / 0.1375)
    assert record.mean_absolute_scaled_error == pytest.approx((0 + 10 + 3) / (10 + 20 + 10))
    assert record.coverage == 0.5
    assert record.winkler_score == pytest.approx((6 + 10 + (10 + 5 / 0.1) + (9 + 1 / 0.1)) / 4)


def test_no_forecasts_have_no_figures() -> None:
    record = track_record([], [], [], [])
    assert record.n == 0
    assert record.mean_absolute_error is record.coverage is record.winkler_score is None
    assert record.relative_error is record.mean_absolute_scaled_error is None


def test_zeros_are_not_divided_by() -> None:
    assert metrics.relative_error([0.0, 2.0], [1.0, 1.0]) == 0.5
    assert metrics.relative_error([0.0], [1.0]) is None
    assert metrics.mean_absolute_scaled_error([5.0, 5.0], [4.0, 4.0]) is None


def test_the_variation_of_relative_errors_is_their_spread_by_their_mean() -> None:
    assert metrics.relative_error_variation([1.0, 1.0], [1.1, 1.3]) == pytest.approx(0.5)  # 10 and 30 %
    assert metrics.relative_error_variation([1.0, 1.0], [1.0, 1.0]) is None


def test_squares_of_the_largest_numbers_are_no_trouble() -> None:
    truth, mean = [1e300, -1e300, 1e300], [-1e300, 1e300, -1e300]
    assert metrics.root_mean_squared_error(truth, mean) == pytest.approx(2e300)
    assert metrics.relative_error([5e-324, 1e-300], [1e300, 1e300]) == 1e300


def test_a_forecast_quantile_pays_for_truths_on_the_unlikely_side() -> None:
    assert metrics.pinball_loss([10.0], [6.0], 0.9) == pytest.approx(3.6)
    assert metrics.pinball_loss([6.0], [10.0], 0.9) == pytest.approx(0.4)
    assert metrics.pinball_loss([6.0, 10.0], [10.0, 6.0], 0.5) == 2.0


def test_forecasting_the_truth_before_scores_one() -> None:
    assert metrics.mean_absolute_scaled_error(TRUTH, [0.0, *TRUTH[:-1]]) == 1.0


def test_the_ends_of_an_interval_belong_to_it() -> None:
    assert metrics.coverage([1.0, 2.0], [1.0, 1.0], [2.0, 2.0]) == 1.0


def test_a_wider_interval_pays_and_a_miss_pays_more() -> None:
    narrow, wide, missing = ([4.0], [6.0]), ([1.0], [9.0]), ([6.0], [7.0])
    scores = [metrics.winkler_score([5.0], *interval) for interval in (narrow, wide, missing)]
    assert scores == pytest.approx([2.0, 8.0, 11.0])


def test_columns_that_do_not_match_are_refused() -> None:
    with pytest.raises(InvalidNumber, match="one length"):
        metrics.mean_absolute_error([1.0], [1.0, 2.0])


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(InvalidNumber, match="finite"):
        metrics.coverage([math.nan], [0.0], [1.0])
