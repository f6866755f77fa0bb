"""Maintenance windows: which are open and planned, and that no slot starts while one is open."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from monitor.models import MaintenanceWindow, Run, Series, Site, Suite
from monitor.models.run import State
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import expand
from monitor.runs.maintenance.windows import open_and_planned, open_for_series, open_for_user, open_windows

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)  # a Sunday
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SUNDAYS: dict[str, Any] = {"schedule": "5 12 * * sun", "duration_seconds": 120}


def create_window(name: str, *sites: str, **fields: Any) -> MaintenanceWindow:
    window = MaintenanceWindow.objects.create(name=name, **fields)
    window.sites.set([Site.objects.get_or_create(name=site)[0] for site in sites])
    return window


def test_slots_in_a_recurring_window_are_skipped_with_its_title(circle: Series) -> None:
    create_window("disks", "site-of-there", title="new disks", **SUNDAYS)
    expand(NOON)
    begun = {minute: len(claim_due(NOON + minute * MINUTE)) for minute in (4, 5, 6)}
    assert begun == {4: 1, 5: 0, 6: 0}
    reasons = Run.objects.filter(state=State.SKIPPED).order_by("slot").values_list("slot", "reason")
    reason = "maintenance: new disks, until 2026-03-01 12:07 UTC"
    assert [reason for reason in reasons if reason[0] >= NOON + 5 * MINUTE] == [
        (NOON + 5 * MINUTE, reason),
        (NOON + 6 * MINUTE, reason),
    ]


def test_slots_after_an_occurrence_run_again(circle: Series) -> None:
    create_window("disks", "site-of-there", **SUNDAYS)
    expand(NOON)
    assert len(claim_due(NOON + 7 * MINUTE)) == 1


def test_a_window_of_other_sites_skips_nothing_and_one_of_every_site_does(circle: Series) -> None:
    elsewhere = create_window("disks", "elsewhere", **SUNDAYS)
    expand(NOON)
    assert len(claim_due(NOON + 5 * MINUTE)) == 1
    Run.objects.in_flight().delete()
    elsewhere.sites.clear()
    assert claim_due(NOON + 6 * MINUTE) == []


@pytest.mark.django_db
def test_open_windows_are_single_or_recurring() -> None:
    create_window("past", starts_at=NOON - 2 * HOUR, ends_at=NOON)
    create_window("now", "sdsc", "anl", starts_at=NOON - HOUR, ends_at=NOON + MINUTE)
    create_window("coming", starts_at=NOON + MINUTE, ends_at=NOON + HOUR)
    create_window("recurring", title="Backup", schedule="0 11 * * *", duration_seconds=7200)
    create_window("recurred", schedule="0 11 * * *", duration_seconds=7200, ends_at=NOON - DAY)
    create_window("later", schedule="0 11 * * *", duration_seconds=7200, starts_at=NOON)
    windows = {
        window.title: (window.starts_at, window.ends_at, window.sites) for window in open_windows(NOON)
    }
    assert windows == {
        "now": (NOON - HOUR, NOON + MINUTE, frozenset({"sdsc", "anl"})),
        "Backup": (NOON - HOUR, NOON + HOUR, frozenset()),
    }


@pytest.mark.django_db
def test_a_window_with_an_invalid_schedule_is_logged_and_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    create_window("backup", schedule="0 11 * * *", timezone="Europe/Berln", duration_seconds=7200)
    create_window("disks", starts_at=NOON, ends_at=NOON + HOUR)
    with caplog.at_level(logging.ERROR):
        assert [window.title for window in open_windows(NOON)] == ["disks"]
    assert "maintenance window backup is ignored: time zone 'Europe/Berln'" in caplog.text


@pytest.mark.django_db
def test_open_and_planned_windows_are_ordered_by_start() -> None:
    create_window("past", starts_at=NOON - 2 * HOUR, ends_at=NOON)
    create_window("monthly", "sdsc", schedule="0 0 1 * *", duration_seconds=60)
    create_window("disks", "sdsc", "anl", starts_at=NOON + DAY, ends_at=NOON + 2 * DAY)
    create_window("backup", schedule="0 11 * * *", duration_seconds=7200)
    create_window("over", schedule="0 11 * * *", duration_seconds=60, ends_at=NOON)
    shown = open_and_planned(User(is_superuser=True), NOON)
    assert [
        (window.window.name, window.is_open, window.occurrence.starts_at, window.sites) for window in shown
    ] == [
        ("backup", True, NOON - HOUR, []),
        ("disks", False, NOON + DAY, ["anl", "sdsc"]),
        ("monthly", False, datetime(2026, 4, 1, tzinfo=UTC), ["sdsc"]),
    ]


def test_windows_and_sites_of_invisible_series_are_hidden(circle: Series) -> None:
    create_window("everywhere", **SUNDAYS)
    create_window("here", "site-of-here", **SUNDAYS)
    create_window("both", "site-of-here", "site-of-there", "elsewhere", **SUNDAYS)
    create_window("elsewhere", "elsewhere", **SUNDAYS)
    reader = User.objects.create_user("reader")

    def seen() -> list[str]:
        return sorted(shown.window.name for shown in open_and_planned(reader, NOON))

    assert seen() == ["both", "everywhere", "here"]
    (both,) = (shown for shown in open_and_planned(reader, NOON) if shown.window.name == "both")
    assert both.where == "site-of-here, site-of-there"
    Suite.objects.get().viewers.add(Group.objects.create(name="operators"))
    assert seen() == ["everywhere"]


def test_the_open_windows_of_a_series_are_those_of_its_sites(circle: Series) -> None:
    create_window("here", "site-of-here", "elsewhere", starts_at=NOON, ends_at=NOON + HOUR)
    create_window("elsewhere", "elsewhere", starts_at=NOON, ends_at=NOON + HOUR)
    create_window("everywhere", title="Network", schedule="0 11 * * *", duration_seconds=7200)
    assert [(shown.window.name, shown.where) for shown in open_for_series(circle, NOON)] == [
        ("everywhere", "everywhere"),
        ("here", "site-of-here"),
    ]
    assert open_for_series(circle, NOON)[0].words == "in maintenance until 2026-03-01 13:00 UTC: Network"
    assert [shown.window.name for shown in open_for_user(User(is_superuser=True), NOON)] == [
        "everywhere",
        "elsewhere",
        "here",
    ]
    assert open_for_series(circle, NOON + 2 * HOUR) == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"starts_at": NOON},
        {"ends_at": NOON},
        {"starts_at": NOON, "ends_at": NOON},
        {"starts_at": NOON, "ends_at": NOON - HOUR},
        {"starts_at": NOON, "ends_at": NOON + HOUR, "duration_seconds": 60},
        {"schedule": "0 8 * * *"},
        {"schedule": "0 8 * * *", "starts_at": NOON, "ends_at": NOON + HOUR},
        {"schedule": "0 8 * * *", "duration_seconds": 0},
        {"schedule": "0 8 * * *", "duration_seconds": 60, "starts_at": NOON, "ends_at": NOON},
        {"duration_seconds": 60},
    ],
)
@pytest.mark.django_db
def test_the_database_refuses_inconsistent_times(fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        MaintenanceWindow.objects.create(name="disks", **fields)


@pytest.mark.django_db
def test_the_name_of_a_window_is_unique() -> None:
    create_window("disks", **SUNDAYS)
    with pytest.raises(IntegrityError), transaction.atomic():
        create_window("disks", starts_at=NOON, ends_at=NOON + HOUR)
