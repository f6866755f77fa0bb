from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest

from forecasting.methods.log_level import Method


def trained(values: Iterable[float]) -> Method:
    method = Method()
    for index, value in enumerate(values):
        method.update(60.0 * index, value)
    return method


def test_by_hand_the_median_is_a_level_of_logarithms_and_the_mean_is_above_it() -> None:
    forecast = trained([5.0, 5.0 * math.exp(0.4)]).forecast(120.0)
    assert forecast.median == pytest.approx(5.0 * math.exp(0.4 / (1.0 + math.exp(-1.0 / 2.0))))
    level, variance = 0.4 / (1.0 + math.exp(-1.0 / 4.0)), math.pi / 2.0 * 0.4**2
    assert forecast.mean == pytest.approx(5.0 * math.exp(level + variance / 2.0))


def test_of_skewed_values_it_finds_the_median_and_the_mean() -> None:
    draw, medians, means = random.Random(6), [], []
    method = Method()
    for index in range(3000):
        method.update(60.0 * index, draw.lognormvariate(3.0, 0.6))
        if index >= 500:
            forecast = method.forecast(60.0 * (index + 1))
            medians.append(forecast.median)
            means.append(forecast.mean)
    assert math.fsum(medians) / len(medians) == pytest.approx(math.exp(3.0), rel=0.04)
    assert math.fsum(means) / len(means) == pytest.approx(math.exp(3.0 + 0.6**2 / 2.0), rel=0.06)


def test_values_three_times_as_large_and_a_third_are_equally_far_away() -> None:
    swinging = trained([30.0, 10.0] * 200)
    assert swinging.forecast(24_000.0).median < 20.0  # the middle of the values is 20
    assert trained([3.0, 1.0] * 200).forecast(24_000.0).median == pytest.approx(
        swinging.forecast(24_000.0).median / 10.0
    )


@pytest.mark.parametrize("strange", [0.0, -5.0])
def test_a_value_that_has_no_logarithm_ends_the_logarithms_and_not_the_forecasts(strange: float) -> None:
    draw = random.Random(6)
    method = trained([*(draw.lognormvariate(3.0, 0.1) for _ in range(100)), strange])
    assert method.forecast(60.0 * 101).median == pytest.approx(math.exp(3.0), rel=0.25)
    for index in range(101, 160):
        method.update(60.0 * index, -7.0)
    assert method.forecast(60.0 * 160).median == pytest.approx(-7.0, abs=0.1)
    assert method.forecast(60.0 * 160).mean == pytest.approx(-7.0, abs=0.5)


def test_nothing_but_negative_values_are_no_worse_than_others() -> None:
    assert trained([-3.0]).forecast(60.0).mean == -3.0
    assert trained([-3.0] * 50).forecast(3000.0).median == -3.0


def test_the_widest_scatter_there_is_leaves_finite_answers() -> None:
    forecast = trained([5e-324, 1e300] * 100).forecast(12_000.0)
    assert 0.0 <= forecast.median <= 1e300
    assert 0.0 <= forecast.mean <= 1e300
