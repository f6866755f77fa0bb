"""Stored availability follows late results, causes, verdicts and maintenance, until a month is final."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from monitor.analysis.availability import store
from monitor.analysis.availability.refresh import TODAY_INTERVAL, refresh
from monitor.analysis.availability.versions import record_versions
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.series.delete import delete_series
from monitor.models import (
    AttributedRun,
    Attribution,
    AvailabilityProfile,
    DirtyDay,
    FailureSignature,
    Incident,
    MaintenanceWindow,
    Run,
    Series,
    Site,
    SiteDay,
    SiteMonth,
)
from monitor.models.incident import MONITOR
from monitor.models.run import State
from reporters import report as wire
from tests.waiting import eventually

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TODAY = timezone.now()  # its midnight, set for each test
NOW = TODAY  # noon of today


@pytest.fixture(autouse=True)
def present_day() -> None:
    """Take today from the clock: triggers mark days that lie before the present day of the database.

    A test that would begin in the last minute of a day begins on the next.
    """
    global TODAY, NOW  # noqa: PLW0603 - functions that parametrize a test use them
    soon = timezone.now() + timedelta(minutes=1)
    assert eventually(lambda: timezone.now().date() == soon.date(), within_seconds=90)
    TODAY = soon.replace(hour=0, minute=0, second=0, microsecond=0)
    NOW = TODAY + 12 * HOUR


def run_at(series: Series, slot: datetime, *, failed_at: str = "", state: str = "") -> Run:
    return Run.objects.create(
        id=wire.run_id(series.name, slot),
        series=series,
        slot=slot,
        due_at=slot,
        state=state or (State.FAILED if failed_at else State.PASSED),
        failed_resource=failed_at,
    )


def passed_hourly(series: Series, day: datetime) -> None:
    for hour in range(24):
        run_at(series, day + hour * HOUR)


def stored(site: str, day: datetime) -> tuple[float, float, float, float]:
    """Return the hours up, unknown, scheduled and down."""
    row = SiteDay.objects.of_sites().get(site__name=site, day=day.date())
    assert not row.is_dirty
    seconds = (row.up_seconds, row.unknown_seconds, row.scheduled_seconds, row.down_seconds)
    up, unknown, scheduled, down = (each / 3600 for each in seconds)
    return up, unknown, scheduled, down


def test_a_past_day_is_stored_with_its_services_and_the_month(circle: Series) -> None:
    yesterday = TODAY - DAY
    passed_hourly(circle, yesterday)
    assert refresh(NOW) is False
    assert stored("site-of-here", yesterday) == (24, 0, 0, 0)
    rows = SiteDay.objects.filter(site__name="site-of-here", day=yesterday.date()).order_by("service")
    assert [(row.service, row.up_seconds, str(row.version)) for row in rows] == [
        ("", 86400, "default-1"),
        ("circle", 86400, "default-1"),
    ]
    month = SiteMonth.objects.of_sites().get(site__name="site-of-here", month=yesterday.date().replace(day=1))
    days = SiteDay.objects.of_sites().filter(
        site=month.site, day__gte=month.month, day__lt=TODAY.date() + DAY
    )
    in_month = [day for day in days if day.day.month == month.month.month]
    assert month.up_seconds == sum(day.up_seconds for day in in_month)
    assert month.unknown_seconds == sum(day.unknown_seconds for day in in_month)
    assert not DirtyDay.objects.exists()


def test_refreshing_again_changes_nothing(circle: Series) -> None:
    passed_hourly(circle, TODAY - DAY)
    refresh(NOW)
    before = list(SiteDay.objects.values_list("pk", "computed_at", "up_seconds"))
    refresh(NOW + timedelta(seconds=1))
    assert list(SiteDay.objects.values_list("pk", "computed_at", "up_seconds")) == before


def test_today_grows_and_is_complete_on_the_next_day(circle: Series) -> None:
    passed_hourly(circle, TODAY)
    refresh(TODAY + HOUR)
    assert stored("site-of-here", TODAY) == (1, 0, 0, 0)
    refresh(TODAY + HOUR + TODAY_INTERVAL / 2)
    assert stored("site-of-here", TODAY) == (1, 0, 0, 0)
    refresh(TODAY + 2 * HOUR)
    assert stored("site-of-here", TODAY) == (2, 0, 0, 0)
    refresh(TODAY + 26 * HOUR)
    assert stored("site-of-here", TODAY) == (24, 0, 0, 0)


def test_days_during_which_the_service_was_down_are_filled(circle: Series) -> None:
    refresh(NOW - 4 * DAY)
    refresh(NOW)
    days = SiteDay.objects.of_sites().filter(site__name="site-of-here", day__gte=(TODAY - 4 * DAY).date())
    assert [(day.day, day.unknown_seconds) for day in days] == [
        *(((TODAY - number * DAY).date(), 86400) for number in (4, 3, 2, 1)),
        (TODAY.date(), 43200),
    ]


def late_report(circle: Series) -> None:
    run = Run.objects.get(slot=TODAY - DAY + 5 * HOUR)
    run.state, run.failed_resource = State.FAILED, "here"
    run.save()


def reclassification(circle: Series) -> None:
    late_report(circle)
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == (23, 0, 0, 1)
    theirs = FailureSignature.objects.create(
        name="proxy", title="Proxy", category="user", severity="minor", counts_against_site=False
    )
    Run.objects.filter(state=State.FAILED).update(signature=theirs)


def signature_that_counts_no_more(circle: Series) -> None:
    late_report(circle)
    signature = FailureSignature.objects.create(
        name="disk", title="Disk", category="storage", severity="minor", counts_against_site=True
    )
    Run.objects.filter(state=State.FAILED).update(signature=signature)
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == (23, 0, 0, 1)
    signature.counts_against_site = False
    signature.save()


def verdict(circle: Series) -> None:
    late_report(circle)
    refresh(NOW)
    part = Attribution.objects.create(
        kind="site", name="site-of-there", probability=1, failed=1, total=1,
        since=TODAY, latest_at=TODAY, decided_at=TODAY,
    )  # fmt: skip
    run = Run.objects.get(state=State.FAILED)
    AttributedRun.objects.create(attribution=part, run=run.pk, slot=run.slot, series=circle)


def window(circle: Series) -> None:
    added = MaintenanceWindow.objects.create(
        name="disks", starts_at=TODAY - DAY + 5 * HOUR, ends_at=TODAY - DAY + 7 * HOUR
    )
    added.sites.add(Site.objects.get(name="site-of-here"))


def moved_window(circle: Series) -> None:
    window(circle)
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == (22, 0, 2, 0)
    MaintenanceWindow.objects.update(ends_at=TODAY - DAY + 9 * HOUR)


def suspicion(circle: Series) -> None:
    late_report(circle)
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == (23, 0, 0, 1)
    since = TODAY - DAY + 5 * HOUR
    Incident.objects.create(kind=MONITOR, since=since, opened_at=since, resolved_at=since + HOUR)


def suspicion_that_a_user_settled(circle: Series) -> None:
    suspicion(circle)
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == (24, 0, 0, 0)
    incident = Incident.objects.get()
    incident.resolved_at, incident.resolved_by = NOW, "ada"
    incident.save()


def removed_window(circle: Series) -> None:
    window(circle)
    refresh(NOW)
    MaintenanceWindow.objects.get().delete()


def recurring_window(circle: Series) -> None:
    MaintenanceWindow.objects.create(name="nightly", schedule="0 3 * * *", duration_seconds=3600)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (late_report, (23, 0, 0, 1)),
        (reclassification, (24, 0, 0, 0)),
        (signature_that_counts_no_more, (24, 0, 0, 0)),
        (verdict, (24, 0, 0, 0)),
        (suspicion, (24, 0, 0, 0)),
        (suspicion_that_a_user_settled, (23, 0, 0, 1)),
        (window, (22, 0, 2, 0)),
        (moved_window, (20, 0, 4, 0)),
        (removed_window, (24, 0, 0, 0)),
        (recurring_window, (23, 0, 1, 0)),
    ],
)
def test_a_later_change_of_a_past_day_is_computed(
    circle: Series,
    settings: Settings,
    change: Callable[[Series], None],
    expected: tuple[float, float, float, float],
) -> None:
    passed_hourly(circle, TODAY - DAY)
    Run.objects.filter(slot=TODAY - DAY + 5 * HOUR).delete()
    run_at(circle, TODAY - DAY + 5 * HOUR, state=State.MISSED)
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == (24, 0, 0, 0)
    change(circle)
    assert DirtyDay.objects.exists()
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == expected


def test_results_of_today_leave_no_marks(circle: Series) -> None:
    run_at(circle, TODAY + HOUR)
    assert not DirtyDay.objects.filter(series_id=circle.pk).exists()


def test_an_old_history_fills_its_months(circle: Series) -> None:
    passed_hourly(circle, datetime(2005, 2, 10, tzinfo=UTC))
    refresh(NOW)
    days = SiteDay.objects.of_sites().filter(site__name="site-of-here", day__year=2005)
    assert [day.day for day in days] == [date(2005, 2, number) for number in range(1, 29)]
    assert days.get(day=date(2005, 2, 10)).up_seconds == 86400
    month = SiteMonth.objects.of_sites().get(site__name="site-of-here", month=date(2005, 2, 1))
    assert (month.availability, month.published_at) == (1, None)


def in_days(number: int) -> datetime:
    """Return noon of a day after the month of yesterday ended."""
    first = (TODAY - DAY).replace(day=1)
    return (first + 32 * DAY).replace(day=1) + number * DAY + 12 * HOUR


def test_a_month_is_final_some_days_after_its_end_and_notes_late_data(
    circle: Series, settings: Settings
) -> None:
    settings.GRIDCAST_AVAILABILITY_FINAL_AFTER_DAYS = 3
    yesterday = TODAY - DAY
    passed_hourly(circle, yesterday)
    refresh(NOW)
    months = SiteMonth.objects.of_sites().filter(month=yesterday.date().replace(day=1))
    refresh(in_days(2))
    assert not months.exclude(published_at=None).exists()
    refresh(in_days(3))
    assert months.filter(published_at=in_days(3)).count() == 2
    run_at(circle, yesterday + HOUR / 2, failed_at="here")
    refresh(in_days(4))
    assert stored("site-of-here", yesterday) == (24, 0, 0, 0)
    assert months.filter(has_late_data=True).count() == 2
    assert not DirtyDay.objects.exists()


def test_a_new_version_is_used_from_its_day_on_and_old_days_keep_theirs(circle: Series) -> None:
    passed_hourly(circle, TODAY - 2 * DAY)
    passed_hourly(circle, TODAY - DAY)
    refresh(NOW - DAY)
    profile = AvailabilityProfile.objects.create(name="strict", valid_from=date(1999, 1, 1))
    record_versions(NOW - DAY)
    refresh(NOW)
    days = SiteDay.objects.of_sites().filter(site__name="site-of-here", day__gte=(TODAY - 2 * DAY).date())
    assert [str(day.version) for day in days] == ["default-1", "strict-1", "strict-1"]
    profile.exclude = {"probes": ["circle"]}
    profile.save()
    record_versions(NOW + DAY)
    run_at(circle, TODAY - DAY + HOUR / 2, failed_at="here")  # yesterday is computed again
    refresh(NOW + DAY)
    days = SiteDay.objects.of_sites().filter(site__name="site-of-here", day__gte=(TODAY - 2 * DAY).date())
    assert [str(day.version) for day in days] == ["default-1", "strict-1", "strict-2", "strict-2"]
    assert days[1].down_seconds == 1800


def test_a_renamed_site_keeps_its_days_and_a_deleted_series_too(circle: Series) -> None:
    passed_hourly(circle, TODAY - DAY)
    refresh(NOW)
    Site.objects.filter(name="site-of-here").update(name="renamed")
    delete_series(Series.objects.filter(pk=circle.pk))
    refresh(NOW + HOUR)
    assert stored("renamed", TODAY - DAY) == (24, 0, 0, 0)


def test_the_days_of_a_deleted_site_are_gone(circle: Series) -> None:
    nowhere = Site.objects.create(name="nowhere")
    refresh(NOW)
    assert SiteDay.objects.filter(site=nowhere).exists()
    DirtyDay.objects.create(site=nowhere, first=TODAY.date(), last=TODAY.date())
    nowhere.delete()
    refresh(NOW + HOUR)
    assert not SiteDay.objects.exclude(site__name__startswith="site-of-").exists()


def test_an_empty_grid_has_no_availability(db: None) -> None:
    assert refresh(NOW) is False
    assert not SiteDay.objects.exists()


def test_sites_are_computed_in_parts_that_fit_into_memory(
    circle: Series, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_hourly(circle, TODAY - DAY)
    monkeypatch.setattr(store, "MOST_SLOTS", 20)
    refresh(NOW)
    assert [stored(site, TODAY - DAY) for site in ("site-of-here", "site-of-there")] == [(24, 0, 0, 0)] * 2


@pytest.mark.django_db(transaction=True)
def test_a_second_worker_does_nothing_meanwhile(circle: Series) -> None:
    passed_hourly(circle, TODAY - DAY)

    def refresh_elsewhere() -> None:
        try:
            refresh(NOW)
        finally:
            connection.close()

    with session_lock(AdvisoryLock.AVAILABILITY), ThreadPoolExecutor(1) as other:
        other.submit(refresh_elsewhere).result()
        assert not SiteDay.objects.exists()
    with ThreadPoolExecutor(2) as both:
        for future in [both.submit(refresh_elsewhere) for _ in range(2)]:
            future.result()
    refresh(NOW)
    assert stored("site-of-here", TODAY - DAY) == (24, 0, 0, 0)
