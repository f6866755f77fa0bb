from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from forecasting import methods, state
from forecasting.methods.blend import Method, expert_names

HOUR_SECONDS = 3600.0


def trained(values: Sequence[float]) -> Method:
    method = Method()
    for index, value in enumerate(values):
        method.update(index * HOUR_SECONDS, value)
    return method


def mean_absolute_error(name: str, values: Sequence[float], first: int = 40) -> float:
    method, misses = methods.load(name)(), []
    for index, value in enumerate(values):
        if index >= first:
            misses.append(abs(method.forecast(index * HOUR_SECONDS).median - value))
        method.update(index * HOUR_SECONDS, value)
    return math.fsum(misses) / len(misses)


def noise_around_a_level(draw: random.Random) -> list[float]:
    return [draw.lognormvariate(3.0, 0.3) for _ in range(300)]


def a_wandering_level(draw: random.Random) -> list[float]:
    level, values = 1000.0, []
    for _ in range(300):
        level += draw.gauss(0.0, 5.0)
        values.append(level + draw.gauss(0.0, 10.0))
    return values


def two_states(draw: random.Random) -> list[float]:
    return [50.0 * (1 + index % 2) + draw.gauss(0.0, 2.0) for index in range(300)]


def levels_that_shift(draw: random.Random) -> list[float]:
    return [100.0 + 40.0 * (index // 75 % 2) + draw.gauss(0.0, 3.0) for index in range(300)]


def a_day_with_a_peak(draw: random.Random) -> list[float]:
    return [20.0 + 30.0 * (index % 24 in (9, 10)) + draw.gauss(0.0, 1.0) for index in range(500)]


def test_every_quick_method_of_the_folder_is_an_expert() -> None:
    assert {"analog", "local_level", "nws", "restarting"} <= set(expert_names())
    assert "blend" not in expert_names()
    blend = trained([1.0, 2.0])
    assert tuple(blend.parts()) == expert_names()


@pytest.mark.parametrize(
    "series", [noise_around_a_level, a_wandering_level, two_states, levels_that_shift, a_day_with_a_peak]
)
@pytest.mark.nightly
def test_the_blend_is_about_as_good_as_the_best_of_the_methods(
    series: Callable[[random.Random], list[float]],
) -> None:
    values = series(random.Random(12))
    blended = mean_absolute_error("blend", values)
    assert blended < 1.15 * min(mean_absolute_error(name, values) for name in expert_names())
    assert blended < 1.1 * mean_absolute_error("nws", values)


@pytest.mark.parametrize("deviations", [10.0, 25.0, 75.0, -75.0])
@pytest.mark.nightly
def test_on_jumping_levels_the_blend_errs_hardly_more_than_the_last_value(deviations: float) -> None:
    draw = random.Random(20)
    values = [100.0 + deviations * (index // 100 % 2) + draw.gauss(0.0, 1.0) for index in range(400)]
    assert mean_absolute_error("blend", values) < 1.15 * mean_absolute_error("last_value", values)


@pytest.mark.parametrize("level", [100.0, 0.02])
def test_one_outlier_moves_neither_the_median_nor_the_mean_far(level: float) -> None:
    draw = random.Random(21)
    values = [level * draw.lognormvariate(0.0, 0.1) for _ in range(200)]
    for wild in (10.0, 250.0):
        forecast = trained([*values, wild * level]).forecast(201 * HOUR_SECONDS)
        assert level < forecast.median < 1.3 * level
        assert level < forecast.mean < 1.5 * level


def test_the_mean_minds_outliers_and_the_median_does_not() -> None:
    draw = random.Random(13)
    values = [draw.gauss(10.0, 1.0) + 40.0 * (draw.random() < 0.1) for _ in range(600)]
    forecast = trained(values).forecast(600 * HOUR_SECONDS)
    assert forecast.median == pytest.approx(10.0, abs=0.7)
    assert forecast.mean == pytest.approx(14.0, abs=2.5)


@pytest.mark.parametrize("wild", [1e3, 1e6, 1e12, -1e300])
def test_an_outlier_is_soon_forgotten(wild: float) -> None:
    draw = random.Random(18)
    calm = [draw.gauss(10.0, 1.0) for _ in range(230)]
    forecasts = {size: trained([*calm[:200], size, *calm[200:]]).forecast(1e6) for size in (10.0, wild)}
    assert forecasts[wild].median == pytest.approx(forecasts[10.0].median, abs=1.0)
    assert forecasts[wild].mean == pytest.approx(forecasts[10.0].mean, abs=2.0)


def test_a_loaded_blend_continues_as_if_it_had_not_been_kept() -> None:
    values = noise_around_a_level(random.Random(14))
    away, there = trained(values[:150]), trained(values)
    back = state.load(Method, state.dump(away))
    for index, value in enumerate(values[150:], start=150):
        back.update(index * HOUR_SECONDS, value)
    assert state.dump(back) == state.dump(there)


def test_a_kept_blend_is_small() -> None:
    assert len(state.dump(trained(noise_around_a_level(random.Random(15))))) < 25_000


def test_every_expert_forecast_has_a_fixed_place() -> None:
    blend = trained([3.0])
    lengths = {len(blend.all_forecasts(0.0))}
    for index, value in enumerate(noise_around_a_level(random.Random(16)), start=1):
        blend.update(index * HOUR_SECONDS, value)
        lengths.add(len(blend.all_forecasts(index * HOUR_SECONDS)))
    assert len(lengths) == 1
    assert np.isfinite(blend.all_forecasts(1e6)).all()


def test_where_runs_overlap_the_median_is_one_of_two_modes_and_the_mean_lies_between() -> None:
    draw, blend, runs = random.Random(17), Method(), []
    for index in range(200):
        seconds = draw.choice([6_000.0, 6_000.0, 36_000.0])
        runs.append((600.0 * index + seconds, 600.0 * index, seconds))
    now = 200 * 600.0
    for known_at, started_at, seconds in sorted(run for run in runs if run[0] <= now):
        blend.learn(started_at, known_at, seconds)
    forecast = blend.forecast(now)
    assert forecast.median == pytest.approx(6_000.0, rel=0.05)
    assert 7_000.0 < forecast.mean < 35_000.0
