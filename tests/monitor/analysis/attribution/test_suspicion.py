"""Many sites that begin to fail at once throw suspicion on the monitor, and are held meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import override_settings

from monitor.analysis.attribution.suspicion import merged, suspect_the_monitor, suspicion_periods
from monitor.analysis.incidents import actions as incident_actions
from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.models import Incident, Series
from monitor.models.incident import MONITOR, IncidentAction
from tests.monitor import reporter_rows
from tests.monitor.conftest import NOON
from tests.monitor.failing_sites import HOUR, grid_of_sites, ran, runs

MINUTE = timedelta(minutes=1)
WINDOW = timedelta(minutes=15)


@pytest.fixture
def grid(circle: Series) -> dict[str, Series]:
    return grid_of_sites(circle)


def update(now: datetime) -> None:
    update_incidents(now)
    suspect_the_monitor(now)


def is_suspected() -> bool:
    return Incident.objects.open().filter(kind=MONITOR).exists()


def held() -> list[str]:
    return sorted(Incident.objects.filter(is_held=True).values_list("name", flat=True))


def test_many_sites_that_fail_at_once_are_one_incident_of_the_monitor(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "b-1", "c-1"], "xx")
    update(NOON)
    suspect = Incident.objects.open().get(kind=MONITOR)
    assert suspect.events.get(action=IncidentAction.OPENED).text == "3 of 5 sites: a, b, c"
    assert held() == ["a", "b", "c"]
    update(NOON + 2 * WINDOW)
    assert Incident.objects.open().get(kind=MONITOR) == suspect
    ran(grid, ["a-1", "b-1"], ".", NOON + HOUR)
    update(NOON + HOUR)
    suspect.refresh_from_db()
    assert suspect.resolution == "fewer sites fail; 2 of 3 held incidents ended meanwhile"
    assert [(row.name, row.is_held) for row in Incident.objects.open()] == [("c", False)]


def test_a_user_settles_that_the_monitor_is_not_at_fault(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "b-1", "c-1"], "xx")
    update(NOON)
    suspect = Incident.objects.open().get(kind=MONITOR)
    incident_actions.resolve(suspect.pk, "a power cut", "ann", NOON + MINUTE)
    update(NOON + 2 * MINUTE)
    assert not is_suspected()
    assert held() == []
    assert Incident.objects.open().count() == 3


def test_sites_that_fail_one_after_the_other_are_no_suspicion(grid: dict[str, Series]) -> None:
    for number, name in enumerate(["a-1", "b-1", "c-1", "d-1"]):
        runs(grid, [name], "xx")
        update(NOON + number * WINDOW)
    assert not is_suspected()


def test_an_incident_that_began_earlier_is_not_held(grid: dict[str, Series]) -> None:
    runs(grid, ["e-1"], "xx")
    update(NOON)
    runs(grid, ["a-1", "b-1", "c-1"], "xx")
    update(NOON + WINDOW)
    assert held() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("share", "window_seconds", "minutes_between", "suspected"),
    [
        (0.5, 900, 5, True),
        (0.5, 500, 5, False),  # three sites begin to fail within ten minutes
        (0.7, 900, 5, False),
        (0.4, 900, 5, True),
    ],
)
def test_the_share_of_sites_and_the_window_are_settings(
    grid: dict[str, Series], share: float, window_seconds: int, minutes_between: int, suspected: bool
) -> None:
    with override_settings(GRIDCAST_SUSPECT_SHARE=share, GRIDCAST_SUSPECT_WINDOW_SECONDS=window_seconds):
        for number, name in enumerate(["a-1", "b-1", "c-1"]):
            runs(grid, [name], "xx")
            update(NOON + number * minutes_between * MINUTE)
    assert is_suspected() is suspected


def test_reporters_that_fall_silent_count_for_their_sites(grid: dict[str, Series]) -> None:
    for name in ("a", "b"):
        reporter_rows.remote(f"agent-{name}", site=name)
        Incident.objects.create(
            kind="reporter", name=f"agent-{name}", condition="unseen_seconds", since=NOON, opened_at=NOON
        )
    runs(grid, ["c-1"], "xx")
    update(NOON)
    assert held() == ["agent-a", "agent-b", "c"]


def suspicion(since: int, until: int | None, resolved_by: str = "") -> None:
    Incident.objects.create(
        kind=MONITOR,
        since=NOON + since * HOUR,
        opened_at=NOON + since * HOUR + MINUTE,
        resolved_at=None if until is None else NOON + until * HOUR,
        resolved_by=resolved_by,
    )


@pytest.mark.django_db
def test_the_periods_of_suspicion_leave_out_what_a_user_settled() -> None:
    suspicion(-9, -8)  # before
    suspicion(-2, 1)  # began before
    suspicion(0, 2)  # overlaps
    suspicion(3, 4, resolved_by="ann")
    suspicion(5, 6)
    suspicion(9, None)  # lasts
    suspicion(20, 21)  # later
    periods = suspicion_periods(NOON - HOUR, NOON + 10 * HOUR)
    assert [((a - NOON) / HOUR, (b - NOON) / HOUR) for a, b in periods] == [(-1, 2), (5, 6), (9, 10)]
    assert suspicion_periods(NOON - 7 * HOUR, NOON - 6 * HOUR) == []


@pytest.mark.parametrize(
    ("periods", "union"),
    [
        ([], []),
        ([(0, 1)], [(0, 1)]),
        ([(0, 1), (1, 2)], [(0, 2)]),
        ([(0, 5), (1, 2), (3, 7)], [(0, 7)]),
        ([(0, 1), (2, 3)], [(0, 1), (2, 3)]),
        ([(1, 1)], []),
    ],
)
def test_periods_that_overlap_or_touch_are_merged(
    periods: list[tuple[int, int]], union: list[tuple[int, int]]
) -> None:
    def at(pairs: list[tuple[int, int]]) -> list[tuple[datetime, datetime]]:
        return [(NOON + start * HOUR, NOON + end * HOUR) for start, end in pairs]

    assert merged(at(periods)) == at(union)
