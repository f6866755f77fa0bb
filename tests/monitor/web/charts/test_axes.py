"""Ticks of axes that the server draws."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from monitor.web.charts.axes import number_ticks, time_ticks

START = datetime(2026, 3, 1, 5, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.0, 10.0, [0, 2, 4, 6, 8, 10]), (-1.0, 1.0, [-1, -0.5, 0, 0.5, 1]), (3.0, 3.0, [3])],
)
def test_numbers_of_an_axis_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert number_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize(
    "span", [timedelta(minutes=7), timedelta(hours=30), timedelta(days=40), timedelta(days=9000)]
)
def test_times_of_an_axis_are_few_and_equally_far(span: timedelta) -> None:
    times = [time for time, _ in time_ticks(START, START + span)]
    assert 2 <= len(times) <= 7
    assert START <= times[0] <= times[-1] <= START + span
    days = {(later - earlier) / timedelta(days=1) for earlier, later in pairwise(times)}
    assert max(days) - min(days) <= 1  # leap years


def test_a_long_axis_has_ticks_at_months() -> None:
    start = datetime(2025, 11, 26, tzinfo=UTC)
    labels = [label for _, label in time_ticks(start, start + timedelta(days=366))]
    assert labels == ["2026-01-01", "2026-04-01", "2026-07-01", "2026-10-01"]
