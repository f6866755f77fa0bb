from __future__ import annotations

import random

import pytest

from forecasting import state
from forecasting.learning.quantile_regression import QuantileRegression, SignalScale

SIGNALS = 8
MEDIAN = 0.5


def mean_error(partitions: int, values: int = 2500) -> float:
    """Return the mean absolute error of the last 1,000 answers on a value that needs two signals at once."""
    draw, scale = random.Random(7), SignalScale.of(SIGNALS)
    regression, errors = QuantileRegression.of(SIGNALS, partitions), list[float]()
    for _ in range(values):
        signals = [draw.gauss(0.0, 1.0) for _ in range(SIGNALS)]
        value = 1.0 if (signals[0] > 0.0) == (signals[1] > 0.0) else -1.0
        scaled = scale.scaled(signals)
        answer = regression.answer(scaled)
        errors.append(abs(value - answer))
        scale.observe(signals)
        regression.learn(scaled, 1.0 - MEDIAN if value <= answer else -MEDIAN)
    return sum(errors[-1000:]) / 1000


def test_partitions_learn_a_product_of_signals_that_a_weighted_sum_cannot() -> None:
    assert mean_error(0) == pytest.approx(1.0, abs=0.05)
    assert mean_error(64) < 0.9


def test_signals_are_scaled_by_earlier_signals_and_limited() -> None:
    scale = SignalScale.of(2)
    assert list(scale.scaled([7.0, 7.0])) == [1.0, 0.0, 0.0]
    for value in range(1000):
        scale.observe([float(value % 2), 1000.0 * (value % 2)])
    level, small, large = scale.scaled([1.0, 1e9])
    assert (level, large) == (1.0, 5.0)
    assert small == pytest.approx(1.0, abs=0.05)


def test_all_regressions_ask_the_same_questions() -> None:
    assert state.dump(QuantileRegression.of(SIGNALS, 4)) == state.dump(QuantileRegression.of(SIGNALS, 4))
