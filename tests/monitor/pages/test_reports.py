"""The pages of reports: lists of periods, a report, CSV, PDF."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from monitor.models import SiteDay, Suite
from monitor.pages import reports
from monitor.reports.pdf import PdfUnavailable
from tests.monitor.pages.conftest import Grid


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
