"""Sites and resources are up, held, in maintenance, down or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User

from monitor.analysis.availability.site_states import (
    CurrentState,
    OperationalState,
    operational_states,
    resource_states,
    site_states,
)
from monitor.depot.rollups.worker import gather
from monitor.models import MaintenanceWindow, Series, Site
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger.holds import hold, resume
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.builders import circle_report, failed_circle_report

OPERATOR = User(is_superuser=True)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
THERE = Scope(HoldKind.SITE, "site-of-there")


def deliver(*reports: wire.Report) -> None:
    for report in reports:
        ingest(wire.to_json(report))
    gather()


def failed(noon: datetime, times: int) -> list[wire.Report]:
    return [failed_circle_report(noon + number * MINUTE) for number in range(times)]


def state_at(now: datetime, site: str = "site-of-there", user: User = OPERATOR) -> CurrentState:
    state = site_states(user, [site], now)[site]
    assert operational_states(user, [site], now) == {site: state.state}  # the short way to it
    return state


def maintain(name: str, starts_at: datetime, ends_at: datetime, sites: Sequence[str] = ()) -> None:
    window = MaintenanceWindow.objects.create(name=name, starts_at=starts_at, ends_at=ends_at)
    window.sites.set(Site.objects.filter(name__in=sites))


@pytest.fixture
def later(noon: datetime) -> datetime:
    return noon + HOUR


def test_a_site_is_unknown_until_a_run_passes_or_fails_and_two_days_later(
    circle: Series, noon: datetime, later: datetime
) -> None:
    assert state_at(later) == CurrentState(OperationalState.UNKNOWN, None, None, [])
    deliver(circle_report(noon))
    assert state_at(later).state == "up"
    assert state_at(noon + timedelta(days=3)).state == "unknown"


def test_a_site_is_up_since_the_last_failure_there(circle: Series, noon: datetime, later: datetime) -> None:
    deliver(circle_report(noon))
    assert state_at(later).since is None
    deliver(*failed(noon + MINUTE, 2), circle_report(noon + 3 * MINUTE))
    assert (state_at(later).state, state_at(later).since) == ("up", noon + 2 * MINUTE)
    assert state_at(later, "site-of-here").since is None


def test_a_site_is_down_since_the_first_of_three_failures(
    circle: Series, noon: datetime, later: datetime
) -> None:
    deliver(circle_report(noon), *failed(noon + MINUTE, 2))
    assert state_at(later).state == "up"
    deliver(*failed(noon + 3 * MINUTE, 1))
    down = state_at(later)
    assert (down.state, down.since, down.until) == ("down", noon + MINUTE, None)
    (reason,) = down.reasons
    assert (reason.resource, reason.text) == (
        "there",
        "the last 3 runs failed at there, since 2026-03-01 12:01 UTC",
    )
    assert state_at(later, "site-of-here").state == "up"
    assert resource_states(OPERATOR, ["here", "there"], later)["there"] == down


def test_a_site_with_a_working_resource_is_up_and_names_the_one_that_fails(
    circle: Series, noon: datetime, later: datetime
) -> None:
    define([ResourceConfig("mover", "site-of-there", "/tmp")], [])
    ring = {"ring": ["here", "mover"]}
    define([], [SeriesDefinition("other", "circle", ring, {"file_bytes": 1000})])
    deliver(*failed(noon, 3))
    assert state_at(later).state == "down", "nothing is known of the other resource"
    deliver(circle_report(noon, series="other", bindings={"ring": ("here", "mover")}))
    up = state_at(later)
    assert (up.state, [reason.resource for reason in up.reasons]) == ("up", ["there"])
    states = resource_states(OPERATOR, ["there", "mover"], later)
    assert {name: state.state.value for name, state in states.items()} == {"there": "down", "mover": "up"}


def test_a_site_is_in_maintenance_from_start_to_end(circle: Series, noon: datetime, later: datetime) -> None:
    deliver(circle_report(noon))
    maintain("disks", later, later + HOUR, ["site-of-there"])
    assert state_at(later - MINUTE).state == "up"
    during = state_at(later + MINUTE)
    assert (during.state, during.since, during.until) == ("maintenance", later, later + HOUR)
    assert state_at(later + MINUTE, "site-of-here").state == "up"
    after = state_at(later + HOUR)
    assert (after.state, after.since) == ("up", later + HOUR)


def test_overlapping_windows_are_one_maintenance(circle: Series, later: datetime) -> None:
    maintain("disks", later, later + HOUR, ["site-of-there"])
    maintain("network", later + MINUTE, later + 2 * HOUR)
    both = state_at(later + 2 * MINUTE)
    assert (both.since, both.until, len(both.reasons)) == (later, later + 2 * HOUR, 2)


def test_a_site_is_held_until_it_is_resumed(circle: Series, noon: datetime, later: datetime) -> None:
    deliver(circle_report(noon))
    hold(THERE, HoldMode.PAUSE, who="ada", why="disk swap", now=later)
    held = state_at(later + MINUTE)
    assert (held.state, held.since, held.until) == ("held", later, None)
    assert "disk swap" in held.reasons[0].text
    resume(THERE, who="ada", why="done", now=later + HOUR)
    assert state_at(later + 2 * HOUR) == CurrentState(OperationalState.UP, later + HOUR, None, [])


def test_a_hold_that_ended_by_itself_is_over_before_the_ledger_notes_it(
    circle: Series, noon: datetime, later: datetime
) -> None:
    deliver(circle_report(noon))
    hold(THERE, HoldMode.DRAIN, who="ada", why="disk swap", now=later, until=later + HOUR)
    assert state_at(later + MINUTE).until == later + HOUR
    assert state_at(later + HOUR).since == later + HOUR


def test_maintenance_comes_before_a_hold_and_a_hold_before_failures(
    circle: Series, noon: datetime, later: datetime
) -> None:
    deliver(*failed(noon, 3))
    hold(THERE, HoldMode.PAUSE, who="ada", why="disk swap", now=later)
    assert state_at(later).state == "held"
    maintain("disks", later, later + HOUR)
    reasons = state_at(later).reasons
    assert state_at(later).state == "maintenance"
    assert [reason.state.value for reason in reasons] == ["maintenance", "held", "down"]


def test_failures_of_invisible_series_do_not_show_in_the_state(
    circle: Series, noon: datetime, later: datetime
) -> None:
    staff = Group.objects.create(name="staff")
    member, other = (User.objects.create_user(name) for name in ("member", "other"))
    member.groups.add(staff)
    circle.suite.viewers.add(staff)
    deliver(*failed(noon, 3))
    assert state_at(later, user=member).state == "down"
    assert state_at(later, user=other).state == "unknown"
    assert [site.name for site in Site.objects.visible_to(other)] == []
    assert [site.name for site in Site.objects.visible_to(member)] == ["site-of-here", "site-of-there"]
