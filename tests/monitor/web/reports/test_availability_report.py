"""The report on availability: sites, suites, the period before, and the episodes of the period."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta

import pytest
from django.contrib.auth.models import User

from monitor.models import FailureSignature, Incident, Site, SiteDay
from monitor.web.reports.availability_report import AvailabilityReport, availability_report, past_periods
from monitor.web.reports.availability_tables import as_csv, points
from monitor.web.reports.periods import PeriodKind, parse_period
from tests.monitor.web.pages import builders

NOW = datetime(2026, 6, 20, 12, tzinfo=UTC)
DAY = 86_400


def days(site: Site, month: int, count: int, *, down: int = 0, scheduled: int = 0) -> None:
    """Store *count* days from the first of *month* on, with so many seconds of each day."""
    SiteDay.objects.bulk_create(
        SiteDay(
            site=site,
            day=date(2026, month, 1) + timedelta(days=number),
            up_seconds=DAY - down - scheduled,
            down_seconds=down,
            scheduled_seconds=scheduled,
            is_dirty=False,
        )
        for number in range(count)
    )


def incident(name: str, since: datetime, hours: int | None) -> Incident:
    return Incident.objects.create(
        signature=FailureSignature.objects.first(),
        kind="at",
        name=name,
        since=since,
        opened_at=since,
        resolved_at=None if hours is None else since + timedelta(hours=hours),
        resolution="" if hours is None else "rebooted",
    )


@pytest.fixture
def may(db: None) -> AvailabilityReport:
    """In May, bad was down for a tenth, with two incidents; idle was in maintenance or unknown."""
    idle, bad = Site.objects.create(name="idle"), Site.objects.create(name="bad", title="=Bad")
    days(bad, 4, 30)
    days(bad, 5, 31, down=DAY // 10)
    days(idle, 5, 15, scheduled=DAY // 2)
    incident("bad", datetime(2026, 5, 3, tzinfo=UTC), 6)
    incident("bad", datetime(2026, 5, 30, tzinfo=UTC), 100)
    incident("idle", datetime(2026, 3, 1, tzinfo=UTC), 5)
    reader = User.objects.create_user("reader", is_superuser=True)
    return availability_report(reader, parse_period("2026-05", NOW), NOW)


def test_the_worst_site_comes_first_with_its_figures(may: AvailabilityReport) -> None:
    idle, bad = may.sites
    assert (idle.name, bad.name) == ("idle", "bad")
    assert bad.totals.availability == pytest.approx(0.9)
    assert bad.change == pytest.approx(-0.1)
    assert idle.totals.availability == pytest.approx(0.5)
    assert idle.totals.reliability == 1.0
    assert idle.totals.coverage == pytest.approx(15 / 31)
    assert idle.change is None


def test_repair_times_come_from_the_incidents_of_the_period(may: AvailabilityReport) -> None:
    bad = next(row for row in may.sites if row.name == "bad")
    assert (bad.repairs.began, bad.repairs.ended) == (2, 1)
    assert bad.repairs.to_repair == 6 * 3600
    assert bad.between_failures == pytest.approx(31 * DAY * 0.9 / 2)
    longest, shorter = may.episodes
    assert (longest.seconds, shorter.seconds) == (48 * 3600, 6 * 3600)


def test_shares_of_all_sites_are_ratios_of_sums(may: AvailabilityReport) -> None:
    up, known = 31 * DAY * 0.9 + 15 * DAY / 2, 31 * DAY + 15 * DAY
    assert may.total.totals.availability == pytest.approx(up / known)


def test_a_suite_sums_the_sites_that_its_series_use(db: None) -> None:
    first, second, third = builders.sites(3)
    builders.series("pings", {"hosts": [first, second]}, probe="login", schedule="")
    days(first.site, 5, 31)
    days(second.site, 5, 31, down=DAY // 2)
    days(third.site, 5, 31, down=DAY)
    reader = User.objects.create_user("reader", is_superuser=True)
    (suite,) = availability_report(reader, parse_period("2026-05", NOW), NOW).suites
    assert suite.name == "main"
    assert suite.totals.availability == pytest.approx(0.75)


def test_the_csv_has_the_same_figures_and_no_formula(may: AvailabilityReport) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(may))))
    assert [(row["scope"], row["name"]) for row in rows] == [
        ("all", "All sites"),
        ("site", "idle"),
        ("site", "bad"),
    ]
    assert float(rows[2]["availability"]) == pytest.approx(0.9)
    assert rows[2]["title"] == "'=Bad"
    assert rows[1]["availability_before"] == ""


def test_periods_with_days_are_listed_newest_first(may: AvailabilityReport) -> None:
    reader = User.objects.get(username="reader")
    months = past_periods(reader, PeriodKind.MONTHLY, NOW)
    assert [line.period.key for line in months] == ["2026-05", "2026-04"]
    assert past_periods(reader, PeriodKind.WEEKLY, NOW)[0].period.key == "2026-W22"


@pytest.mark.parametrize(
    ("change", "text"), [(0.0123, "+1.2"), (-0.003, "-0.3"), (0.0001, "0.0"), (None, "\N{EN DASH}")]
)
def test_changes_are_percentage_points(change: float | None, text: str) -> None:
    assert points(change) == text
