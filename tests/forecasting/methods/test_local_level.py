from __future__ import annotations

import random

import pytest

from forecasting.methods.local_level import Method


def trained(values: list[float]) -> Method:
    method = Method()
    for time_seconds, value in enumerate(values):
        method.update(time_seconds, value)
    return method


def test_pure_noise_is_smoothed_to_its_mean() -> None:
    draw = random.Random(4)
    method = trained([draw.gauss(50.0, 5.0) for _ in range(800)])
    assert method.forecast(800.0).mean == pytest.approx(50.0, abs=2.0)


def test_a_random_walk_is_forecast_by_its_last_value() -> None:
    draw, walk = random.Random(4), [0.0]
    for _ in range(800):
        walk.append(walk[-1] + draw.gauss(0.0, 1.0))
    assert trained(walk).forecast(900.0).mean == pytest.approx(walk[-1], abs=0.3)


def test_by_hand_the_gain_with_the_least_squared_error_is_used() -> None:
    # After 0, 10 every gain has missed by 10; then 10 is met best by gain 1, whose level is 10.
    assert trained([0.0, 10.0]).forecast(2.0).mean == pytest.approx(0.5)  # a tie: the least gain, 0.05
    assert trained([0.0, 10.0, 10.0]).forecast(3.0).mean == pytest.approx(10.0)
