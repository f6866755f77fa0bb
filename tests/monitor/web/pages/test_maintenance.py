"""The pages of maintenance windows: announced by a form, previewed, changed, ended and deleted."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from monitor.models import MaintenanceChange, MaintenanceWindow
from monitor.models.role import UserRole
from monitor.runs.ledger.weekly_schedules import parse_weekly, weekly_cron
from monitor.runs.maintenance.times import WindowTimes, next_occurrences
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

NEW = "/maintenance/new/"
WEEKLY: dict[str, Any] = {
    "title": "Patch day",
    "repeats": "weekly",
    "sites": ["site1"],
    "days": ["TUE", "MON"],
    "at": "08:30",
    "hours": "1.5",
    "zone": "Europe/Berlin",
    "not_before": "2026-01-01T00:00",
    "reason": "security updates",
}


@pytest.fixture
def admin(grid: Grid) -> Client:
    """A browser of the admin of site1."""
    return builders.browser_of("sam", UserRole.SITE_ADMIN, "site1")


def test_a_site_admin_previews_and_announces_a_weekly_window(admin: Client) -> None:
    admin.cookies["timezone"] = "America/Chicago"
    preview = admin.post(NEW, {**WEEKLY, "verb": "preview"})
    page = preview.content.decode()
    assert (preview.status_code, page.count("<time ")) == (200, 10)
    assert "Times in America/Chicago, UTC beside" in page
    assert not MaintenanceWindow.objects.exists()
    answer = admin.post(NEW, {**WEEKLY, "verb": "save"})
    assert answer.headers["Location"] == "/maintenance/windows/patch-day/"
    window = MaintenanceWindow.objects.get()
    assert (window.schedule, window.timezone, window.duration_seconds) == (
        "30 8 * * MON,TUE",
        "Europe/Berlin",
        5400,
    )
    assert MaintenanceChange.objects.get().why == "security updates"
    assert "30 8 * * MON,TUE" in admin.get("/maintenance/windows/patch-day/").content.decode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repeats": "cron", "schedule": "*/10 * * * *", "hours": "0.1"}, "144 times a day"),
        ({"repeats": "cron", "schedule": "0 8 * * *", "hours": "24"}, "would always be open"),
        ({"repeats": "cron", "schedule": "0 8 * * TUE,WED", "hours": "25"}, "the next occurrence starts"),
        ({"repeats": "cron", "schedule": "H 8 * * *"}, "expected numbers"),
        ({"repeats": "cron", "schedule": ""}, "Give a cron expression"),
        ({"days": []}, "Choose at least one day"),
        ({"hours": ""}, "Give the duration"),
        ({"zone": "Mars"}, "Mars"),
        ({"sites": []}, "Choose at least one site"),
        ({"sites": ["site2"]}, "site2"),
        ({"repeats": "once", "starts_at": "2100-01-02T00:00", "ends_at": "2100-01-01T00:00"}, "is not after"),
        ({"reason": ""}, "required"),
    ],
)
def test_a_window_that_is_refused_says_why_at_its_field(
    admin: Client, changes: dict[str, Any], message: str
) -> None:
    answer = admin.post(NEW, {**WEEKLY, **changes, "verb": "save"})
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert not MaintenanceWindow.objects.exists()


def test_a_window_is_changed_ended_and_deleted_with_reasons(admin: Client) -> None:
    admin.post(NEW, {**WEEKLY, "verb": "save"})
    path = "/maintenance/windows/patch-day/"
    form = admin.get(f"{path}edit/").context["form"].initial
    assert (form["repeats"], form["days"], form["at"], form["hours"]) == (
        "weekly",
        ["MON", "TUE"],
        time(8, 30),
        1.5,
    )
    assert admin.post(f"{path}edit/", {**WEEKLY, "hours": "2", "verb": "save"}).status_code == 302
    assert MaintenanceWindow.objects.get().duration_seconds == 7200
    assert admin.post(f"{path}end/", {"reason": ""}).status_code == 409
    assert admin.post(f"{path}end/", {"reason": "no longer needed"}).status_code == 302
    assert MaintenanceWindow.objects.get().ends_at is not None
    assert admin.post(f"{path}delete/", {"reason": "by mistake"}).status_code == 302
    assert not MaintenanceWindow.objects.exists()
    actions = list(MaintenanceChange.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["added", "changed", "shortened", "removed"]


def test_an_operator_announces_maintenance_everywhere_and_declares_what_is_over(grid: Grid) -> None:
    operator = builders.browser_of("olga", UserRole.OPERATOR)
    now = timezone.now().replace(second=0, microsecond=0)
    once = {"repeats": "once", "title": "Grid upgrade", "reason": "upgrade", "verb": "save"}
    ahead = {
        "starts_at": f"{now + timedelta(hours=1):%Y-%m-%dT%H:%M:00Z}",
        "ends_at": f"{now + timedelta(hours=2):%Y-%m-%dT%H:%M:00Z}",
    }
    past = {
        "starts_at": f"{now - timedelta(hours=3):%Y-%m-%dT%H:%M:00Z}",
        "ends_at": f"{now - timedelta(hours=2):%Y-%m-%dT%H:%M:00Z}",
    }
    for times in (ahead, ahead, {**past, "sites": ["site2"]}):
        assert operator.post(NEW, {**once, **times}).status_code == 302
    windows = MaintenanceWindow.objects.order_by("pk").values_list("name", "source")
    assert list(windows) == [("grid-upgrade", ""), ("grid-upgrade-2", ""), ("grid-upgrade-3", "declared")]
    path = "/maintenance/windows/grid-upgrade-3/"
    context = operator.get(path).context
    assert (context["may_change"], context["may_end"], context["may_delete"]) == (False, False, True)
    assert operator.post(f"{path}delete/", {"reason": "by mistake"}).status_code == 302


@pytest.mark.parametrize(
    ("schedule", "days", "at"),
    [
        ("30 8 * * MON,TUE", ("MON", "TUE"), time(8, 30)),
        ("0  0 * *  sun,mon", ("MON", "SUN"), time(0)),
        ("5 23 * * *", ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"), time(23, 5)),
    ],
)
def test_a_weekly_schedule_is_read_and_written(schedule: str, days: tuple[str, ...], at: time) -> None:
    weekly = parse_weekly(schedule)
    assert weekly is not None
    assert (weekly.days, weekly.at) == (days, at)
    assert parse_weekly(weekly_cron(days, at)) == weekly


@pytest.mark.parametrize(
    "schedule", ["", "0 8 1 * MON", "*/5 8 * * MON", "0 8 * * 1", "0 24 * * MON", "0 8 * * XYZ"]
)
def test_another_schedule_is_not_weekly(schedule: str) -> None:
    assert parse_weekly(schedule) is None


def test_the_next_occurrences_begin_with_the_open_one() -> None:
    noon = datetime(2026, 3, 4, 12, tzinfo=UTC)
    daily = WindowTimes(schedule="0 11 * * *", duration_seconds=7200)
    assert [each.starts_at.day for each in next_occurrences(daily, noon, 3)] == [4, 5, 6]
    once = WindowTimes(noon, noon + timedelta(hours=1))
    assert len(next_occurrences(once, noon, 3)) == 1
