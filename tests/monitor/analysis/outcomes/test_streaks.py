"""Consecutive failures of series, and of the series that an incident affects."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.analysis.outcomes.streaks import incident_streaks, longest, streaks
from monitor.models import Incident, Series
from tests.monitor.conftest import NOON
from tests.monitor.failing_sites import HOUR, grid_of_sites, runs


@pytest.fixture
def grid(circle: Series) -> dict[str, Series]:
    return grid_of_sites(circle)


def test_failures_are_counted_back_to_the_last_passed_run(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "xx.xxx")
    runs(grid, ["a-2"], "xxx")
    runs(grid, ["b-1"], "xx.")
    names = {grid[name].pk: name for name in ("a-1", "a-2", "b-1")}
    found = streaks(names, NOON + timedelta(minutes=1))
    assert {each.series: each.count for each in found.values()} == {"a-1": 3, "a-2": 3}
    streak = found[grid["a-1"].pk]
    assert streak.text == "3 consecutive failures"
    assert streak.latest_at - streak.began_at == 2 * HOUR
    assert longest([]) is None


def test_an_incident_has_the_streak_of_the_series_that_fails_longest(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "xxxx")
    runs(grid, ["a-2"], "..xx")
    update_incidents(NOON)
    incident = Incident.objects.get()
    found = incident_streaks([incident.pk], Series.objects.all(), NOON + timedelta(minutes=1))
    assert (found[incident.pk].series, found[incident.pk].count) == ("a-1", 4)
    assert incident_streaks([incident.pk], Series.objects.none(), NOON) == {}
