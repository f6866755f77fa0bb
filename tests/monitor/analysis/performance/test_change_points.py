"""Change points are those of an exhaustive search, and are matched with what was recorded near them."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.performance.change_points import (
    LEAST_RUNS,
    LevelChange,
    change_points,
    penalty,
    scaled_signal,
)
from monitor.analysis.performance.describe import NotFinite
from monitor.analysis.performance.matched_changes import ChangePoint, RecordedChange, matched
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def noise(n: int, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(seed).normal(10.0, 1.0, n)


def cost(signal: list[float], edges: tuple[int, ...]) -> float:
    """Return the cost that change points minimise, of levels between *edges*."""
    parts = [np.array(signal[start:end]) for start, end in itertools.pairwise(edges)]
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return squares + penalty(len(signal)) * (len(parts) - 1)


def best_edges(signal: list[float]) -> tuple[int, ...]:
    """Return the edges of least cost among all partitions into levels of at least ``LEAST_RUNS``."""

    @cache
    def partitions(end: int) -> list[tuple[int, ...]]:
        shorter = [
            (*edges, end) for start in range(LEAST_RUNS, end - LEAST_RUNS + 1) for edges in partitions(start)
        ]
        return [(0, end), *shorter]

    return min(partitions(len(signal)), key=lambda edges: cost(signal, edges))


def test_a_shift_of_the_level_is_found_with_both_medians() -> None:
    values = noise(80)
    values[50:] += 6.0
    (point,) = change_points(values)
    assert point == LevelChange(50, float(np.median(values[:50])), float(np.median(values[50:])))


def test_a_level_that_returns_is_two_change_points() -> None:
    values = noise(90)
    values[30:60] *= 2.0
    assert [point.index for point in change_points(values)] == [30, 60]


def test_the_scale_does_not_matter() -> None:
    values = noise(60)
    values[30:] += 4.0
    indices = [point.index for point in change_points(values)]
    assert indices == [30]
    assert [point.index for point in change_points(values * 1e-4 + 7.0)] == indices


def test_single_slow_runs_are_no_level() -> None:
    values = noise(60)
    values[[10, 30, 31, 50]] = 500.0
    assert change_points(values) == []


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 4 + [9.0] * 5, [0.1] * 40], ids=len)
def test_few_or_equal_values_have_no_change_points(values: list[float]) -> None:
    assert change_points(np.array(values)) == []


def test_exact_levels_are_found_although_their_noise_is_zero() -> None:
    values = np.array([1.0] * 20 + [2.0] * 20)
    assert change_points(values) == [LevelChange(20, 1.0, 2.0)]


def test_steady_noise_seldom_has_change_points() -> None:
    found = sum(bool(change_points(noise(200, seed))) for seed in range(100))
    assert found <= 5


@pytest.mark.parametrize("phi", [0.3, 0.5, 0.7])
def test_noise_that_depends_on_the_run_before_seldom_has_change_points(phi: float) -> None:
    found = 0
    for seed in range(50):
        values = noise(200, seed)
        for number in range(1, 200):
            values[number] += phi * (values[number - 1] - 10.0)
        found += bool(change_points(values))
    assert found <= 8


def test_a_shift_is_found_in_few_runs() -> None:
    hits = 0
    for seed in range(50):
        values = noise(30, seed)
        values[15:] += 3.0
        hits += any(abs(point.index - 15) <= 2 for point in change_points(values))
    assert hits >= 45


def test_a_shift_is_found_in_noise_that_depends_on_the_run_before() -> None:
    values = noise(200)
    for number in range(1, 200):
        values[number] += 0.5 * (values[number - 1] - 10.0)
    values[100:] += 5.0
    (point,) = change_points(values)
    assert abs(point.index - 100) <= 2


def test_a_value_that_is_not_finite_is_refused() -> None:
    with pytest.raises(NotFinite):
        change_points(np.array([1.0] * 19 + [math.nan]))


@given(st.lists(st.integers(0, 12), min_size=10, max_size=22), st.integers(0, 12))
def test_no_partition_costs_less(column: list[int], shift: int) -> None:
    values = np.array(column, float)
    values[len(values) // 2 :] += shift
    signal = scaled_signal(values)
    edges = (0, *(point.index for point in change_points(values)), len(values))
    if signal is None:
        assert edges == (0, len(values))
        return
    least = best_edges(signal.tolist())
    assert cost(signal.tolist(), edges) == pytest.approx(cost(signal.tolist(), least))


def test_changes_near_a_point_are_matched_the_nearest_first() -> None:
    point = ChangePoint(NOON, NOON + HOUR, 10.0, 20.0)
    within = RecordedChange(NOON + 30 * MINUTE, "probe", "probe circle 1.0 -> 1.1")
    before = RecordedChange(NOON - 20 * MINUTE, "maintenance", "maintenance ended: new disks")
    after = RecordedChange(NOON + HOUR + 10 * MINUTE, "environment", "kernel 6.1 -> 6.2")
    early = RecordedChange(NOON - 31 * MINUTE, "parameters", "file_bytes 1 MB -> 2 MB")
    late = RecordedChange(NOON + HOUR + 31 * MINUTE, "resources", "ring a -> b")
    (found,) = matched([point], [early, before, late, after, within], 30 * MINUTE)
    assert list(found.recorded) == [within, after, before]
    assert [list(each.recorded) for each in matched([point], [early, late], 30 * MINUTE)] == [[]]


def test_the_ends_of_the_tolerance_belong_to_it() -> None:
    point = ChangePoint(NOON, NOON + HOUR, 10.0, 20.0)
    ends = [RecordedChange(NOON - MINUTE, "a", ""), RecordedChange(NOON + HOUR + MINUTE, "b", "")]
    (found,) = matched([point], ends, MINUTE)
    assert list(found.recorded) == ends


def test_one_change_explains_two_points_and_no_points_need_no_changes() -> None:
    change = RecordedChange(NOON, "probe", "")
    points = [ChangePoint(NOON - HOUR, NOON, 1.0, 2.0), ChangePoint(NOON, NOON + HOUR, 2.0, 3.0)]
    assert [list(each.recorded) for each in matched(points, [change], MINUTE)] == [[change], [change]]
    assert matched([], [change], MINUTE) == []
