from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest

from forecasting.learning.levels import Levels, MeanLevels, MedianLevels


def trained(levels: Levels, values: Iterable[float]) -> Levels:
    for value in values:
        levels.update(value, 1.0)
    return levels


def noise(count: int, around: float, *, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(around, 1.0) for _ in range(count)]


def test_by_hand_weights_decay_with_elapsed_time() -> None:
    levels = MedianLevels()
    levels.update(0.0, 0.0)
    levels.update(10.0, 3.0)
    assert levels.all_expected(1.0) == pytest.approx(
        [10.0 / (1.0 + math.exp(-3.0 / memory)) for memory in (2.0, 8.0, 32.0)]
    )


def test_while_time_stands_still_every_value_counts_alike() -> None:
    levels = MeanLevels()
    for value in (1.0, 2.0, 3.0, 6.0):
        levels.update(value, 0.0)
    assert levels.all_expected(0.0) == pytest.approx([3.0, 3.0, 3.0])


def test_an_outlier_moves_the_level_no_further_than_a_value_at_the_edge_of_the_usual() -> None:
    calm = trained(MedianLevels(), noise(200, 50.0)).expected(1.0)
    assert trained(MedianLevels(), [*noise(200, 50.0), 1e9]).expected(1.0) == pytest.approx(calm, abs=1.0)


def test_the_level_follows_a_shift() -> None:
    for levels in (MedianLevels(), MeanLevels()):
        trained(levels, [*noise(100, 50.0), *noise(40, 1050.0)])
        assert levels.expected(1.0) == pytest.approx(1050.0, abs=3.0)


def test_the_level_with_the_least_recent_loss_is_used() -> None:
    draw, walk = random.Random(3), [0.0]
    for _ in range(300):
        walk.append(walk[-1] + draw.gauss(0.0, 1.0))
    wandering, steady = trained(MeanLevels(), walk), trained(MeanLevels(), noise(300, 50.0))
    assert wandering.expected(1.0) == wandering.all_expected(1.0)[0]
    assert steady.expected(1.0) == steady.all_expected(1.0)[-1]


def test_the_longer_the_gap_the_nearer_the_forecast_is_to_the_usual_level() -> None:
    levels = trained(MedianLevels(), [*noise(300, 50.0), *noise(3, 52.0)])
    fast, *_, slow = levels.all_expected(1.0)
    forecasts = [levels.all_expected(elapsed)[0] for elapsed in (0.0, 1.0, 2.0, 5.0, 20.0, 1e9)]
    assert forecasts[0] == forecasts[1] == fast
    assert forecasts == sorted(forecasts, reverse=True)
    assert forecasts[-1] == pytest.approx(slow)


def test_after_a_shift_the_old_level_is_no_longer_the_usual_one() -> None:
    levels = trained(MedianLevels(), [*noise(300, 50.0), *noise(30, 90.0)])
    assert levels.all_expected(1.0)[-1] < 80.0
    assert levels.expected(1e9) == pytest.approx(90.0, abs=2.0)
