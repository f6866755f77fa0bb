from __future__ import annotations

import math

import pytest

from forecasting.methods.decaying import Method


def trained(*timed: tuple[float, float]) -> Method:
    method = Method()
    for time_seconds, value in timed:
        method.update(time_seconds, value)
    return method


def test_by_hand_the_mean_has_a_longer_memory_than_the_median() -> None:
    forecast = trained((0.0, 0.0), (60.0, 10.0)).forecast(120.0)
    assert forecast.median == pytest.approx(10.0 / (1.0 + math.exp(-1.0 / 2.0)))
    assert forecast.mean == pytest.approx(10.0 / (1.0 + math.exp(-1.0 / 4.0)))


def test_after_a_long_gap_a_new_value_weighs_more() -> None:
    regular = [(60.0 * index, 10.0 + index % 2) for index in range(50)]
    soon, late = trained(*regular, (60.0 * 50, 14.0)), trained(*regular, (60.0 * 500, 14.0))
    assert late.forecast(60.0 * 501).median > soon.forecast(60.0 * 51).median + 0.5


def test_seconds_or_hours_make_no_difference() -> None:
    values = [float(index * 7 % 11) for index in range(60)]
    quick = trained(*((index * 1.0, value) for index, value in enumerate(values))).forecast(60.0)
    slow = trained(*((index * 3600.0, value) for index, value in enumerate(values))).forecast(60 * 3600.0)
    assert (quick.mean, quick.median) == pytest.approx((slow.mean, slow.median), rel=1e-12)
