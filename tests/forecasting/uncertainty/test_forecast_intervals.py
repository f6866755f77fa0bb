from __future__ import annotations

import math
import random

import pytest

from forecasting.base import Abstained, InvalidNumber
from forecasting.learning.windows import SortedWindow
from forecasting.uncertainty.intervals import QUANTILE_LEVELS, Residuals, lower_tail


def residuals(*numbers: float, window: int = 100) -> Residuals:
    tracked = Residuals(SortedWindow(window))
    for number in numbers:
        tracked.add(number)
    return tracked


@pytest.mark.parametrize("numbers", [(), (1.0,)])
def test_one_residual_gives_no_interval(numbers: tuple[float, ...]) -> None:
    with pytest.raises(Abstained) as abstained:
        residuals(*numbers).interval(0.8)
    assert abstained.value.reason == "too_few"


def test_two_residuals_give_the_interval_of_student() -> None:
    lower, upper = residuals(3.0, -4.0).interval(0.8)
    # t(0.9, 2 degrees of freedom) = 1.885618 from the tables; root mean square of 3 and 4: sqrt(12.5)
    assert upper == pytest.approx(1.885618 * math.sqrt(12.5), rel=1e-6)
    assert lower == -upper


def test_two_equal_residuals_are_not_certainty() -> None:
    lower, upper = residuals(2.0, 2.0).interval(0.8)
    assert lower < 0.0
    assert upper > 2.0


@pytest.mark.parametrize(
    ("level", "count", "expected"),
    [
        (0.8, 9, (1.0, 9.0)),  # the 1st of 9 from each side: 1 / (9 + 1) is left out on each
        (0.8, 99, (10.0, 90.0)),
        (0.9, 19, (1.0, 19.0)),
        (0.9, 99, (5.0, 95.0)),
        (0.5, 3, (1.0, 3.0)),
        (0.42, 99, (29.0, 71.0)),  # 100 * 0.29 is a little less than 29 in binary
    ],
)
def test_enough_residuals_give_order_statistics(
    level: float, count: int, expected: tuple[float, float]
) -> None:
    numbers = [float(number) for number in range(1, count + 1)]
    random.Random(0).shuffle(numbers)
    assert residuals(*numbers).interval(level) == expected


def test_one_residual_less_than_enough_falls_back_to_student() -> None:
    lower, upper = residuals(*[1.0, -1.0] * 4).interval(0.8)
    assert lower == -upper
    assert upper == pytest.approx(1.396815, rel=1e-6)  # t(0.9, 8 degrees of freedom)


def test_student_reaches_at_least_as_far_as_residuals_did() -> None:
    lower, upper = residuals(*[0.1] * 50, 100.0).interval(0.99)
    assert upper == 100.0
    assert lower < 0.0


@pytest.mark.parametrize("count", [2, 5, 9, 30, 100])
def test_quantiles_never_fall_with_rising_probability(count: int) -> None:
    draw = random.Random(count)
    tracked = residuals(*(draw.lognormvariate(0.0, 2.0) for _ in range(count)))
    probabilities = sorted({*QUANTILE_LEVELS, *(draw.random() for _ in range(50))})
    quantiles = list(tracked.around(10.0, probabilities).values())
    assert quantiles == sorted(quantiles)


def test_skewed_residuals_give_a_skewed_interval() -> None:
    lower, upper = residuals(*[-1.0] * 50, *[10.0] * 49).interval(0.8)
    assert (lower, upper) == (-1.0, 10.0)


def test_old_residuals_are_forgotten() -> None:
    assert residuals(*[1000.0] * 100, *[1.0] * 100).interval(0.8) == (1.0, 1.0)


@pytest.mark.parametrize("count", [3, 9, 25, 60, 100])
def test_the_next_residual_is_covered_with_the_promised_probability(count: int) -> None:
    draw = random.Random(count)
    trials, hits = 3000, 0
    for _ in range(trials):
        *past, coming = (draw.gauss(0.0, 2.0) for _ in range(count + 1))
        lower, upper = residuals(*past).interval(0.8)
        hits += lower <= coming <= upper
    assert 0.78 <= hits / trials <= 0.87


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 80.0, math.nan])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    with pytest.raises(InvalidNumber, match="level"):
        residuals(1.0, 2.0).interval(level)


def test_the_tails_of_a_level_are_the_numbers_people_write() -> None:
    assert [lower_tail(level) for level in (0.8, 0.9, 0.95)] == [0.1, 0.05, 0.025]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_residual_that_is_no_number_is_refused(number: float) -> None:
    with pytest.raises(InvalidNumber, match="residual"):
        residuals(number)


def test_quantiles_lie_around_the_point_and_are_finite_even_at_the_edge_of_numbers() -> None:
    past = residuals(*map(float, range(-9, 10)))
    assert past.around(100.0, (0.05, 0.5, 0.95)) == {0.05: 91.0, 0.5: 100.0, 0.95: 109.0}
    wild = residuals(1e300, -1e300).around(1.7e308, (0.0005, 0.9995))
    assert all(map(math.isfinite, wild.values()))
