"""Resources are unavailable in maintenance, on hold, and when every run fails there."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User

from monitor.analysis.forecasts.unavailable import find_unavailable
from monitor.depot.rollups.worker import gather
from monitor.models import MaintenanceWindow, Series, Site
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger.holds import hold
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report

BOTH = ("here", "there")
OPERATOR = User(is_superuser=True)
MINUTE = timedelta(minutes=1)


def deliver(*reports: wire.Report) -> None:
    for report in reports:
        ingest(wire.to_json(report))
    gather()


def failed(noon: datetime, times: int) -> list[wire.Report]:
    return [failed_circle_report(noon + number * MINUTE) for number in range(times)]


@pytest.fixture
def later(noon: datetime) -> datetime:
    return noon + timedelta(hours=1)


def test_no_resource_is_unavailable_without_trouble(circle: Series, noon: datetime, later: datetime) -> None:
    deliver(circle_report(noon))
    assert find_unavailable(OPERATOR, BOTH, later, later) == {}
    assert find_unavailable(OPERATOR, (), later, later) == {}


def test_a_site_is_unavailable_during_its_maintenance(circle: Series, later: datetime) -> None:
    ends_at = later + timedelta(hours=2)
    work = MaintenanceWindow.objects.create(name="disks", title="new disks", starts_at=later, ends_at=ends_at)
    work.sites.add(Site.objects.get(name="site-of-there"))
    assert list(find_unavailable(OPERATOR, BOTH, later, later)) == ["there"]
    assert "new disks, until 2026-03-01 15:00 UTC" in find_unavailable(OPERATOR, BOTH, later, later)["there"]
    assert find_unavailable(OPERATOR, BOTH, later - MINUTE, later) == {}
    assert find_unavailable(OPERATOR, BOTH, ends_at, later) == {}


def test_a_maintenance_window_without_sites_covers_every_site(circle: Series, later: datetime) -> None:
    MaintenanceWindow.objects.create(name="network", starts_at=later, ends_at=later + MINUTE)
    assert sorted(find_unavailable(OPERATOR, BOTH, later, later)) == ["here", "there"]


def test_a_site_on_hold_is_unavailable_until_the_hold_ends(circle: Series, later: datetime) -> None:
    until = later + timedelta(hours=1)
    site = Scope(HoldKind.SITE, "site-of-here")
    hold(site, HoldMode.PAUSE, who="ada", why="disk swap", now=later, until=until)
    assert "disk swap" in find_unavailable(OPERATOR, BOTH, later, later)["here"]
    assert find_unavailable(OPERATOR, BOTH, until + MINUTE, later) == {}


def test_a_hold_of_a_suite_does_not_affect_its_sites(circle: Series, later: datetime) -> None:
    hold(Scope(HoldKind.SUITE, circle.suite.name), HoldMode.PAUSE, who="ada", why="no need", now=later)
    assert find_unavailable(OPERATOR, BOTH, later, later) == {}


def test_a_resource_is_unavailable_after_three_failures_in_a_row(
    circle: Series, noon: datetime, later: datetime
) -> None:
    deliver(circle_report(noon), *failed(noon + MINUTE, 2))
    assert find_unavailable(OPERATOR, BOTH, later, later) == {}
    deliver(*failed(noon + 3 * MINUTE, 1))
    assert find_unavailable(OPERATOR, BOTH, later, later) == {
        "there": "the last 3 runs failed at there, since 2026-03-01 12:01 UTC"
    }


def test_failures_of_invisible_series_are_not_revealed(
    circle: Series, noon: datetime, later: datetime
) -> None:
    staff, member, other = Group.objects.create(name="staff"), User(username="member"), User(username="other")
    for user in (member, other):
        user.save()
    member.groups.add(staff)
    circle.suite.viewers.add(staff)
    deliver(*failed(noon, 3))
    assert find_unavailable(other, BOTH, later, later) == {}
    assert list(find_unavailable(member, BOTH, later, later)) == ["there"]


def test_failures_expire_after_days_without_a_run(circle: Series, noon: datetime) -> None:
    deliver(*failed(noon, 3))
    assert find_unavailable(OPERATOR, BOTH, noon + timedelta(days=3), noon + timedelta(days=3)) == {}


def test_an_outage_of_now_says_nothing_about_tomorrow(circle: Series, later: datetime) -> None:
    deliver(*failed(later - 5 * MINUTE, 3))
    assert list(find_unavailable(OPERATOR, BOTH, later, later)) == ["there"]
    assert find_unavailable(OPERATOR, BOTH, later + timedelta(days=1), later) == {}


def test_a_resource_is_available_after_a_run_of_another_series_passed(
    circle: Series, noon: datetime, later: datetime
) -> None:
    define([], [SeriesDefinition("other", "circle", {"ring": list(BOTH)}, {"file_bytes": 1000})])
    deliver(circle_report(noon - MINUTE, series="other"), *failed(noon, 4))
    assert list(find_unavailable(OPERATOR, BOTH, later, later)) == ["there"]
    deliver(circle_report(noon + 2 * MINUTE, series="other"))
    assert find_unavailable(OPERATOR, BOTH, later, later) == {}
