"""The pages of reports: lists of periods, a report, CSV, PDF."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from monitor.analysis.availability.recompute import RecomputationRequest, recompute
from monitor.analysis.availability.refresh import refresh
from monitor.models import Series, SiteDay, SiteMonth, Suite
from monitor.web.pages import reports
from monitor.web.reports.pdf import PdfUnavailable
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid


@pytest.fixture
def may(grid: Grid) -> Grid:
    """In May 2005, site1 was down for an hour a day."""
    SiteDay.objects.bulk_create(
        SiteDay(
            site=grid.resources[0].site,
            day=date(2005, 5, 1) + timedelta(days=number),
            up_seconds=82_800,
            down_seconds=3600,
            is_dirty=False,
        )
        for number in range(31)
    )
    return grid


def test_without_days_the_list_says_so(db: None, client: Client) -> None:
    assert "No reports" in client.get("/reports/monthly/").content.decode()


def test_a_report_and_its_csv_show_the_same(may: Grid, client: Client) -> None:
    page = client.get("/reports/2005-05/").content.decode()
    for part in (
        "May 2005",
        "site1",
        "95.8 %",
        "1 d 07 h",
        'href="/reports/2005-04/"',
        'href="/reports/2005-06/"',
    ):
        assert part in page, part
    answer = client.get("/reports/2005-05/report.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="availability-2005-05.csv"'
    assert "site,site1,,2005-05,0.958" in answer.content.decode()
    assert "Week 19, 2005" in client.get("/reports/2005-W19/").content.decode()


def test_what_is_no_period_is_not_found(db: None, client: Client) -> None:
    assert client.get("/reports/2005-13/").status_code == 404
    assert client.get("/reports/9000-01/report.csv").status_code == 404


def test_a_report_has_only_sites_that_the_user_may_see(may: Grid, client: Client) -> None:
    Suite.objects.get(name="main").viewers.add(Group.objects.create(name="others"))
    assert "site1" not in client.get("/reports/2005-05/").content.decode()
    assert "site1" not in client.get("/reports/2005-05/report.csv").content.decode()


def test_without_pango_the_page_says_what_to_install(
    may: Grid, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise PdfUnavailable("cannot make PDF: no Pango; install Pango")

    monkeypatch.setattr(reports, "pdf_renderer", fail)
    answer = client.get("/reports/2005-05/report.pdf", follow=True)
    assert answer.redirect_chain == [("/reports/2005-05/", 302)]
    assert "install Pango" in answer.content.decode()


def deliver_hours(series: Series, hours: range, *, failed_at: str = "") -> None:
    """Deliver, today, the reports of *hours* of 10 May 2005: passed, or failed at a resource."""
    for hour in hours:
        sent = builders.report(series, datetime(2005, 5, 10, hour, tzinfo=UTC))
        if failed_at:
            sent = builders.failed(sent, "transfer_ring", failed_at, "Connection refused")
        builders.delivered(sent)


def availability_of_site1(client: Client) -> float:
    """Return the availability of site1 in May 2005 as the CSV of the report has it."""
    lines = client.get("/reports/2005-05/report.csv").content.decode().splitlines()
    (line,) = (line for line in lines if line.startswith("site,site1,"))
    return float(line.split(",")[lines[0].split(",").index("availability")])


def test_failures_delivered_late_change_the_report_of_their_month(grid: Grid, client: Client) -> None:
    now = timezone.now()
    deliver_hours(grid.circle, range(12))
    refresh(now)
    assert availability_of_site1(client) == 1
    deliver_hours(grid.circle, range(12, 16), failed_at="site1-login")
    refresh(now)
    # Up from 0 to 12, down from 12 to 15, and the last result counts for a day.
    assert availability_of_site1(client) == pytest.approx(12 / (12 + 3 + 24))
    assert "30.8 %" in client.get("/reports/2005-05/").content.decode()


def test_the_report_of_a_final_month_changes_when_it_is_recomputed(grid: Grid, client: Client) -> None:
    now = timezone.now()
    deliver_hours(grid.circle, range(12))
    refresh(now)
    SiteMonth.objects.update(published_at=now)
    deliver_hours(grid.circle, range(12, 16), failed_at="site1-login")
    refresh(now)
    assert availability_of_site1(client) == 1
    site, (first, last) = grid.resources[0].site, (date(2005, 5, 1), date(2005, 5, 31))
    recompute(RecomputationRequest([site], first, last, requester="ada", reason="late reports"), now)
    assert availability_of_site1(client) == pytest.approx(12 / (12 + 3 + 24))
