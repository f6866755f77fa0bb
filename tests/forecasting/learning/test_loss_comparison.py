"""The confidence interval of a gain, from what is stored of a comparison."""

from __future__ import annotations

import random
import statistics

import pytest

from forecasting.learning.loss_comparison import LossComparison, gain_interval


@pytest.mark.parametrize("shift", [0.3, -0.3])
def test_the_interval_of_a_gain_follows_from_its_p_value(shift: float) -> None:
    losses, comparison = random.Random(1), LossComparison()
    own = [losses.uniform(0.5, 1.5) for _ in range(40)]
    others = [loss - shift + losses.gauss(0.0, 0.4) for loss in own]
    for loss, other in zip(own, others, strict=True):
        comparison.add(loss, other)
    interval = gain_interval(comparison.n, comparison.gain, comparison.p_value)
    assert interval is not None
    gains = [loss - other for loss, other in zip(own, others, strict=True)]
    error = statistics.stdev(gains) / 40**0.5 / statistics.mean(own)
    assert interval[1] - interval[0] == pytest.approx(2 * 2.0227 * error, rel=1e-3)  # Student, 39 degrees
    assert sum(interval) / 2 == pytest.approx(comparison.gain)


@pytest.mark.parametrize(
    ("n", "gain", "p_value"), [(1, 0.1, 0.2), (9, 0.1, 0.0), (9, 0.0, 0.5), (9, 0.1, 1.0)]
)
def test_a_gain_without_a_deviation_has_no_interval(n: int, gain: float, p_value: float) -> None:
    assert gain_interval(n, gain, p_value) is None
