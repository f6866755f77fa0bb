from __future__ import annotations

import random

import pytest

from forecasting.methods.restarting import Method


def trained(values: list[float]) -> Method:
    method = Method()
    for time_seconds, value in enumerate(values):
        method.update(time_seconds, value)
    return method


def noise(count: int, level: float, *, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(level, 2.0) for _ in range(count)]


def test_while_nothing_changes_the_level_is_that_of_a_long_window() -> None:
    values = noise(200, 100.0)
    forecast = trained(values).forecast(200.0)
    assert forecast.median == sorted(values[-51:])[25]
    assert forecast.mean == pytest.approx(sum(values[-51:]) / 51)


@pytest.mark.parametrize("level", [130.0, 70.0])
def test_three_values_at_another_level_are_a_change(level: float) -> None:
    changed = noise(6, level, seed=2)
    assert trained(noise(100, 100.0) + changed[:2]).forecast(0.0).median == pytest.approx(100.0, abs=2.0)
    assert trained(noise(100, 100.0) + changed[:3]).forecast(0.0).median == pytest.approx(level, abs=3.0)
    assert trained(noise(100, 100.0) + changed).forecast(0.0).mean == pytest.approx(sum(changed) / 6)


def test_single_outliers_are_no_change_point() -> None:
    values = noise(200, 100.0)
    values[::10] = [1e6] * 20
    assert trained(values).forecast(0.0).median == pytest.approx(100.0, abs=2.0)
