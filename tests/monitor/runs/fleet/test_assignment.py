"""Assignments: what an agent gets, and when it gets a new version."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from monitor.depot.series.segments import local_identity
from monitor.models import Forecast, ForecastState, MaintenanceWindow, Reporter, Series, Site, Usage
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.operations.gridfile.agents import MAX_AGENT_SECONDS
from monitor.runs.fleet.assignment import FORECASTS_AGE, KEPT_VERSIONS, current_assignment
from monitor.runs.ledger.expand import slots_of
from monitor.runs.ledger.holds import hold, resume
from reporters.remote.assignment import parse
from reporters.report import rfc3339
from tests.monitor.runs.fleet.agents import remote_reporter
from tests.monitor.runs.fleet.remote_series import disk, remote_grid

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)  # a Sunday
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def document(reporter: Reporter, now: datetime = NOW) -> dict[str, Any]:
    """Return the assignment of *reporter* at *now*, which its agent accepts."""
    text = current_assignment(reporter, now).document
    parse(text, reporter.name)
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def series_of(reporter: Reporter) -> dict[str, Any]:
    return {each["name"]: each for each in document(reporter)["series"]}


def test_an_assignment_has_all_that_an_agent_needs() -> None:
    reporter = remote_grid(disk(limit_seconds=600.0, parameters={"file_bytes": 10000}, jitter_seconds=30))
    version = current_assignment(reporter, NOW).version
    assert document(reporter) == {
        "format": 1,
        "reporter": "ncsa",
        "version": version,
        "issued_at": "2026-03-01T12:00:00.000000Z",
        "series": [
            {
                "name": "disk-ncsa",
                "probe": "disk",
                "parameters": {"file_bytes": 10000},
                "bindings": {"target": ["ncsa-login"]},
                "schedule": "0 * * * *",
                "schedule_name": "disk-ncsa",
                "timezone": "UTC",
                "starts_at": None,
                "ends_at": None,
                "delay_seconds": 0,
                "after": None,
                "jitter_seconds": 30,
                "exclusive": "",
                "exclusive_wait_seconds": 900,
                "limit_seconds": 600.0,
                "max_load1": None,
                "warm_up_runs": 0,
                "expected_seconds": {},
            }
        ],
        "resources": {
            "ncsa-login": {
                "site": "ncsa",
                "scratch": "/scratch/ncsa",
                "shell": {"kind": "local"},
                "transfer": {"kind": "local"},
                "batch": {"kind": "fork"},
                "address": "192.0.2.7",
            }
        },
        "windows": [],
        "capacity": 4,
    }


def test_an_agent_gets_only_enabled_series_of_its_own() -> None:
    remote_grid(disk(), disk("off", enabled=False), disk("home-disk", reporter="home"))
    Series.objects.filter(name="home-disk").update(probe="disk")
    assert list(series_of(Reporter.objects.get(name="ncsa"))) == ["disk-ncsa"]
    assert document(remote_reporter("idle"))["series"] == []


def test_an_unchanged_assignment_keeps_its_version_and_costs_few_queries(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    reporter = remote_grid(*(disk(f"disk-{number}") for number in range(50)))
    first = current_assignment(reporter, NOW)
    with django_assert_max_num_queries(6):
        assert current_assignment(reporter, NOW + HOUR) == first
    assert "document" in current_assignment(reporter, NOW + HOUR).get_deferred_fields()


def test_every_change_makes_a_higher_version(admin_user: User) -> None:
    reporter = remote_grid()
    versions = [current_assignment(reporter, NOW).version]
    changes: list[Any] = [
        lambda: Series.objects.update(schedule="30 * * * *"),
        lambda: Series.objects.update(parameters={"file_bytes": 5}),
        lambda: Site.objects.get(name="ncsa").resources.update(scratch="/other"),
        lambda: Reporter.objects.update(capacity=1),
        lambda: hold(Scope(HoldKind.SERIES, "disk-ncsa"), HoldMode.PAUSE, who="ada", why="test", now=NOW),
        lambda: Series.objects.update(enabled=False),
    ]
    for change in changes:
        change()
        versions.append(current_assignment(Reporter.objects.get(name="ncsa"), NOW).version)
    assert versions == sorted(set(versions))


def test_versions_rise_after_the_depot_was_restored_from_a_backup() -> None:
    reporter = remote_grid()
    before = current_assignment(reporter, NOW).version
    reporter.assignments.all().delete()
    assert current_assignment(reporter, NOW + HOUR).version > before


def test_old_versions_are_deleted() -> None:
    reporter = remote_grid()
    for minute in range(KEPT_VERSIONS + 5):
        Series.objects.update(schedule=f"{minute} * * * *")
        newest = current_assignment(reporter, NOW + timedelta(minutes=minute))
    assert reporter.assignments.count() == KEPT_VERSIONS
    assert reporter.assignments.order_by("-version").first() == newest


def test_a_series_with_a_leader_has_the_slots_of_the_ledger() -> None:
    leader = disk("leader", schedule="H * * * *", timezone="Europe/Berlin")
    follower = {"schedule": "", "leader": "leader", "delay_seconds": 60}
    after, together = disk("after", follows="after", **follower), disk("with", follows="with", **follower)
    assignment = current_assignment(remote_grid(leader, after, together), NOW)
    assigned = parse(assignment.document, "ncsa").series
    assert [assigned[name].after for name in ("leader", "after", "with")] == ["", "leader", ""]
    for name, each in assigned.items():
        schedule = each.parsed_schedule()
        assert schedule is not None
        slots = [slot + each.delay for slot in schedule.slots(NOW - each.delay, NOW + DAY - each.delay)]
        assert slots == list(slots_of(Series.objects.get(name=name), NOW, NOW + DAY))


def test_without_its_leader_a_series_runs_on_request_only() -> None:
    follower = {"schedule": "", "leader": "leader"}
    reporter = remote_grid(
        disk("leader", enabled=False),
        disk("after", follows="after", **follower),
        disk("with", follows="with", **follower),
    )
    assigned = series_of(reporter)
    assert [(each["schedule"], each["after"]) for each in assigned.values()] == [("", None)] * 2


def test_holds_are_windows_with_their_reason() -> None:
    reporter = remote_grid(disk(), disk("both", bindings={"target": ["sdsc-login"]}))
    scopes = {
        Scope(HoldKind.SERIES, "both"): ["both"],
        Scope(HoldKind.SUITE, "main"): ["both", "disk-ncsa"],
        Scope(HoldKind.SITE, "ncsa"): ["disk-ncsa"],
        Scope(HoldKind.REPORTER, "ncsa"): ["both", "disk-ncsa"],
        Scope(HoldKind.REPORTER, "home"): None,
    }
    Reporter.objects.get_or_create(name="home")
    for scope, names in scopes.items():
        hold(scope, HoldMode.DRAIN, who="ada", why="disk swap", now=NOW, until=NOW + HOUR)
        window = {"series": names, "starts_at": rfc3339(NOW), "ends_at": rfc3339(NOW + HOUR)}
        expected = [{**window, "reason": "drained by ada: disk swap"}] if names else []
        assert document(reporter)["windows"] == expected
        resume(scope, who="ada", why="done", now=NOW)
    assert document(reporter)["windows"] == []


def test_maintenance_is_announced_for_weeks_and_changes_the_version_once_a_week() -> None:
    reporter = remote_grid(disk(), disk("elsewhere", bindings={"target": ["sdsc-login"]}))
    weekly = MaintenanceWindow.objects.create(
        name="weekly", title="Disks", schedule="0 8 * * tue", duration_seconds=3600
    )
    weekly.sites.add(Site.objects.get(name="ncsa"))
    MaintenanceWindow.objects.create(name="once", starts_at=NOW, ends_at=NOW + HOUR)
    MaintenanceWindow.objects.create(name="past", starts_at=NOW - 9 * DAY, ends_at=NOW - 8 * DAY)
    windows = document(reporter)["windows"]
    tuesdays = [datetime(2026, 2, 24, 8, tzinfo=UTC) + week * timedelta(weeks=1) for week in range(5)]
    assert [window["starts_at"] for window in windows if window["series"] == ["disk-ncsa"]] == [
        rfc3339(tuesday) for tuesday in tuesdays
    ]
    assert windows[0]["reason"] == "maintenance: Disks, until 2026-02-24 09:00 UTC"
    (once,) = (window for window in windows if window["series"] == ["disk-ncsa", "elsewhere"])
    assert (once["starts_at"], once["ends_at"]) == (rfc3339(NOW), rfc3339(NOW + HOUR))
    versions = {
        current_assignment(reporter, NOW + hours * HOUR).version for hours in range(0, 12 + 7 * 24, 6)
    }
    assert len(versions) == 2


def test_a_site_without_budget_left_is_closed_until_midnight() -> None:
    reporter = remote_grid()
    site = Site.objects.get(name="ncsa")
    Site.objects.update(runs_per_day=1)
    assert document(reporter)["windows"] == []
    run = Series.objects.get().runs.create(id="00000000-0000-0000-0000-000000000001", slot=NOW, due_at=NOW)
    Usage.objects.create(run=run, site=site, began_at=NOW)
    (window,) = document(reporter)["windows"]
    assert (window["reason"], window["ends_at"]) == (
        "budget: ncsa has none left today",
        "2026-03-02T00:00:00.000000Z",
    )


def test_a_reporter_with_a_capacity_of_0_runs_nothing() -> None:
    reporter = remote_grid()
    Reporter.objects.update(capacity=0)
    reporter.refresh_from_db()
    assignment = parse(current_assignment(reporter, NOW).document, "ncsa")
    assert assignment.capacity == 1
    assert assignment.windows[0].covers("disk-ncsa", NOW + 1000 * DAY)


def test_an_agent_accepts_the_longest_times_that_a_grid_file_may_give_it() -> None:
    times: dict[str, Any] = dict.fromkeys(
        ("delay_seconds", "jitter_seconds", "exclusive_wait_seconds"), MAX_AGENT_SECONDS
    )
    remote_grid(disk(limit_seconds=float(MAX_AGENT_SECONDS), **times))
    assert series_of(Reporter.objects.get(name="ncsa"))["disk-ncsa"]["limit_seconds"] == MAX_AGENT_SECONDS


def forecast(upper: float) -> None:
    """Make *upper* the forecast of the total of the series."""
    series = Series.objects.get()
    identity = local_identity(series.probe, series.parameters, {"target": ["ncsa-login"]})
    segment, _ = series.segments.get_or_create(
        fingerprint=identity.fingerprint, defaults={"number": 1, "began_at": NOW, "probe": series.probe}
    )
    metric, _ = segment.metrics.get_or_create(name="total.seconds", defaults={"unit": "seconds"})
    known = {"last_time": NOW, "last_known_at": NOW, "n": 3, "level": 0.8}
    values = {"mean": 1.0, "median": 1.0, "lower": 1.0, "upper": upper}
    issued = Forecast.objects.create(metric=metric, issued_at=NOW, method="mean", **known, **values)
    ForecastState.objects.update_or_create(metric=metric, defaults={"forecast": issued})


def test_forecasts_change_the_version_at_most_daily_and_only_if_they_changed_a_lot() -> None:
    reporter = remote_grid()
    forecast(100.04)
    first = current_assignment(reporter, NOW)
    assert series_of(reporter)["disk-ncsa"]["expected_seconds"] == {"total.seconds": 100.0}
    forecast(400.0)
    assert current_assignment(reporter, NOW + HOUR) == first
    second = current_assignment(reporter, NOW + FORECASTS_AGE)
    assert json.loads(second.document)["series"][0]["expected_seconds"] == {"total.seconds": 400.0}
    forecast(450.0)
    assert current_assignment(reporter, NOW + 2 * FORECASTS_AGE) == second
    assert second.version > first.version
