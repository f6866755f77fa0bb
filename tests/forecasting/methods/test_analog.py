from __future__ import annotations

import math
from itertools import cycle, islice

import pytest

from forecasting.base import Abstained
from forecasting.methods.analog import Method


def trained(values: list[float]) -> Method:
    method = Method()
    for time_seconds, value in enumerate(values):
        method.update(time_seconds, value)
    return method


def test_the_forecast_is_what_followed_the_same_values_before() -> None:
    pattern = [1.0, 1.0, 5.0, 1.0, 9.0]
    method = trained(list(islice(cycle(pattern), 150)))
    answers = []
    for index, value in enumerate(islice(cycle(pattern), 10), start=150):
        answers.append(method.forecast(index).median)
        method.update(index, value)
    assert answers == pattern * 2


def test_median_and_mean_are_of_the_values_after_the_21_nearest_moments() -> None:
    # After 0, 9 it went on 16 times with 1 and 5 times with 8.
    method = trained([value for after in [1.0] * 16 + [8.0] * 5 for value in (0.0, 9.0, after)] + [0.0, 9.0])
    forecast = method.forecast(65.0)
    assert forecast.median == 1.0
    assert forecast.mean == pytest.approx((16 + 5 * 8) / 21)


def test_of_two_values_nothing_followed_yet_so_the_newest_is_expected() -> None:
    assert trained([3.0]).forecast(1.0).median == 3.0
    assert trained([3.0, 8.0]).forecast(2.0).median == 8.0
    assert trained([3.0, 8.0, 4.0]).forecast(3.0).median == 4.0  # all that ever followed two values


def test_moments_that_are_long_past_are_forgotten() -> None:
    method = trained([*[7.0] * 50, *[1.0, 2.0] * 110])
    assert max(method.expert_forecasts(0.0)) < 3.0


def test_without_values_there_are_no_expert_forecasts() -> None:
    with pytest.raises(Abstained):
        Method().expert_forecasts(0.0)


def test_the_largest_numbers_have_finite_neighbours() -> None:
    assert all(math.isfinite(number) for number in trained([1e300, -1e300, 1.0] * 30).expert_forecasts(0.0))
