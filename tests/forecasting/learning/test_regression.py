from __future__ import annotations

import math
import random

import numpy as np
import pytest
import scipy  # submodules load when used: scipy.stats takes a second

from forecasting.learning.regression import (
    LeastSquaresLine,
    Ridge,
    RidgeSlope,
    least_squares,
    same_quantile,
    theil_sen,
)


def noisy_pairs(count: int, seed: int = 5) -> list[tuple[float, float]]:
    draw = random.Random(seed)
    return [
        (x, 3.0 + 2.0 * x + draw.gauss(0.0, 1.0)) for x in (draw.uniform(0.0, 10.0) for _ in range(count))
    ]


def test_the_line_is_that_of_least_squares() -> None:
    pairs = noisy_pairs(40)
    line = LeastSquaresLine()
    for pair in pairs:
        line.learn(*pair)
    reference = scipy.stats.linregress(*zip(*pairs, strict=True))
    assert line.at(7.0) == pytest.approx(reference.intercept + 7.0 * reference.slope)
    assert least_squares(pairs, 7.0) == line.at(7.0)


def test_where_nothing_varies_the_line_is_flat() -> None:
    assert least_squares([(2.0, 5.0), (2.0, 7.0)], 100.0) == 6.0


def test_pairs_that_would_overflow_are_left_out_of_the_line() -> None:
    line = LeastSquaresLine()
    for pair in [(1.0, 1.0), (1e300, -1e300), (-1e300, 1e300), (2.0, 2.0)]:
        line.learn(*pair)
    assert math.isfinite(line.at(1e300))


def test_theil_sen_is_that_of_the_textbook() -> None:
    pairs = noisy_pairs(31)
    xs, ys = zip(*pairs, strict=True)
    slope = scipy.stats.theilslopes(ys, xs).slope
    assert theil_sen(pairs) == pytest.approx((np.median(np.array(ys) - slope * np.array(xs)), slope))


def test_a_fifth_of_outliers_hardly_turns_the_robust_line() -> None:
    pairs = noisy_pairs(31)
    spoilt = [(x, 1e6 if index % 5 == 0 else y) for index, (x, y) in enumerate(pairs)]
    height, slope = theil_sen(spoilt)
    assert slope == pytest.approx(2.0, abs=0.6)
    assert height == pytest.approx(3.0, abs=3.0)


def test_a_robust_line_through_one_place_is_flat() -> None:
    assert theil_sen([(2.0, 5.0), (2.0, 7.0), (2.0, 100.0)]) == (7.0, 0.0)


def test_numbers_too_large_for_a_robust_line_give_nan() -> None:
    pairs = [(5e-324, 1e300), (0.0, -1e300), (1e-310, 1e300), (1e-320, 0.0)]
    assert not all(map(math.isfinite, theil_sen(pairs)))


@pytest.mark.parametrize(
    ("shown", "expected"), [(10.0, 100.0), (15.0, 150.0), (30.0, 400.0), (-5.0, 100.0), (99.0, 400.0)]
)
def test_the_same_quantile_is_found_between_neighbours_and_not_beyond_the_outermost(
    shown: float, expected: float
) -> None:
    pairs = [(20.0, 400.0), (10.0, 200.0), (30.0, 100.0)]  # their order does not matter
    assert same_quantile(pairs, shown) == expected


def test_the_same_quantile_of_tied_numbers_is_in_the_middle_of_their_ranks() -> None:
    assert same_quantile([(1.0, 4.0), (1.0, 8.0), (1.0, 5.0)], 1.0) == 5.0


def test_a_ridge_without_penalty_and_forgetting_is_least_squares() -> None:
    draw = np.random.default_rng(3)
    numbers, actuals = draw.normal(size=(50, 3)), draw.normal(size=50)
    ridge = Ridge(penalty=1e-9, decay=1.0, reach=1e9)
    for row, actual in zip(numbers, actuals, strict=True):
        ridge.learn(row, float(actual))
    expected, *_ = np.linalg.lstsq(numbers, actuals)
    assert ridge.coefficients == pytest.approx(expected, rel=1e-6)


def test_a_slope_is_a_ridge_of_one_number() -> None:
    draw = random.Random(4)
    ridge, slope = Ridge(10.0, 0.99, 0.7), RidgeSlope(10.0, 0.99, 0.7)
    for _ in range(60):
        number, actual = draw.gauss(0.0, 1.0), draw.gauss(0.0, 2.0)
        ridge.learn(np.array([number]), actual)
        slope.learn(number, actual)
    assert slope.expected(1.5) == pytest.approx(ridge.expected(np.array([1.5])))


def test_numbers_that_join_later_count_from_then_on() -> None:
    ridge = Ridge(1.0, 1.0, 10.0)
    for value in (1.0, -1.0) * 20:
        ridge.learn(np.array([value]), value)
    expected = ridge.expected(np.array([1.0, 1.0]))
    for value in (1.0, -1.0) * 20:
        ridge.learn(np.array([0.0, value]), value)
    assert expected == ridge.expected(np.array([1.0, 0.0])) == pytest.approx(40.0 / 41.0)
    assert ridge.expected(np.array([0.0, 1.0])) == pytest.approx(40.0 / 41.0)
