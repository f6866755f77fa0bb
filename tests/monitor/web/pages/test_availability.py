"""The pages of availability: sites by month, a site's days and services, and recomputations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.availability.refresh import refresh
from monitor.analysis.availability.versions import record_versions
from monitor.models import (
    AvailabilityProfile,
    MaintenanceWindow,
    Recomputation,
    Run,
    Series,
    Site,
    SiteMonth,
    Suite,
)
from monitor.models.run import State
from monitor.web.pages import availability as availability_page
from reporters import report as wire
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MARCH = datetime(2005, 3, 1, tzinfo=UTC)
SITE = "/availability/sites/site1/"
MONTH = "?month=2005-03"


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


def run_days(series: Series, days: int, failed_at: str) -> None:
    """Store runs an hour; those of the last six hours of each day failed."""
    runs = []
    for number in range(24 * days):
        slot = MARCH + number * HOUR
        has_failed = number % 24 >= 18
        runs.append(
            Run(
                id=wire.run_id(series.name, slot),
                series=series,
                slot=slot,
                due_at=slot,
                state=State.FAILED if has_failed else State.PASSED,
                failed_resource=failed_at if has_failed else "",
            )
        )
    Run.objects.bulk_create(runs)


@pytest.fixture
def march(grid: Grid) -> Grid:
    run_days(grid.circle, 31, grid.resources[0].name)
    refresh(timezone.now())
    return grid


def test_without_availability_the_page_says_so(db: None, client: Client) -> None:
    assert "No availability" in text(client, "/availability/")


def test_each_site_has_its_figures_and_days(march: Grid, client: Client) -> None:
    shown = text(client, f"/availability/{MONTH}")
    for part in ("75.0 %", "7 d 18 h", "2005-03-14: available 75.0 %, reliable 75.0 %", "March 2005"):
        assert part in shown, part
    assert "site1: downtime on 31 of 31 days, most on 2005-03-01" in shown
    assert "site2: no downtime on 31 days" in shown
    assert 'href="?month=2005-02"' in shown
    assert 'href="?month=2005-04"' in shown


def test_many_sites_have_pages(march: Grid, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability_page, "SITES_A_PAGE", 1)
    first, second = (text(client, f"/availability/{MONTH}&page={number}") for number in (1, 2))
    assert 'href="/sites/site1/' in first
    assert 'href="/sites/site1/' not in second
    assert 'href="/sites/site2/' in second


def test_the_number_of_queries_does_not_depend_on_the_sites(
    march: Grid, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(11):
        text(client, f"/availability/{MONTH}")


@pytest.mark.parametrize("month", ["2005-3", "0000-00", "9999-12", "2005-03'--", "%00", "<b>", "٢٠٠٥-٠٣"])
def test_an_invalid_month_shows_the_present_one(march: Grid, client: Client, month: str) -> None:
    for page in ("/availability/", SITE):
        shown = text(client, f"{page}?month={month}")
        assert f"<strong>{timezone.now():%B %Y}</strong>" in shown
        assert "<b>" not in shown


def test_a_site_has_days_services_and_profile(march: Grid, client: Client) -> None:
    shown = text(client, f"{SITE}{MONTH}")
    for part in ("Profile default-1", "provisional", "circle", "2005-03-31", "No recomputations"):
        assert part in shown, part
    assert 'name="reason"' not in shown, "the user may not run series"


def test_states_of_a_month(march: Grid, client: Client) -> None:
    months = SiteMonth.objects.of_sites().filter(month=MARCH.date())
    months.update(published_at=timezone.now())
    assert ": only recomputations change it" in text(client, f"{SITE}{MONTH}")
    months.update(has_late_data=True)
    assert "final, late data" in text(client, f"/availability/{MONTH}")


def test_an_allowed_user_recomputes_a_month(march: Grid, runner: Client, client: Client) -> None:
    window = MaintenanceWindow.objects.create(
        name="x", starts_at=MARCH + 18 * HOUR, ends_at=MARCH + 24 * HOUR
    )
    window.sites.add(Site.objects.get(name="site1"))
    assert 'name="reason"' in text(runner, f"{SITE}{MONTH}")
    answer = runner.post(f"{SITE}recompute/", {"month": "2005-03", "reason": "new <b>disks"})
    assert (answer.status_code, answer["Location"]) == (302, f"{SITE}{MONTH}")
    record = Recomputation.objects.get()
    assert (record.requester, record.reason) == ("runner", "new <b>disks")
    for page in (f"{SITE}{MONTH}", "/availability/recomputations/"):
        shown = text(client, page)
        assert "2005-03-01, site1: 75.0 % -&gt; 75.0 % (reliability 75.0 % -&gt; 100.0 %)" in shown
        assert "new &lt;b&gt;disks" in shown


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"month": "2005-03", "reason": " \x00"}, "Not recomputed: expected a reason."),
        ({"month": "9005-03", "reason": "x"}, "Not recomputed: 9005-03 lies in the future."),
        ({"reason": "x", "month": "x"}, "Not recomputed: expected a month such as 2026-03"),
        ({"month": "2005-03", "reason": "x", "profile": "no-7"}, "there is no version &#x27;no-7&#x27;"),
    ],
)
def test_a_refused_recomputation_says_why(
    march: Grid, runner: Client, form: dict[str, str], message: str
) -> None:
    answer = runner.post(f"{SITE}recompute/", form, follow=True)
    assert message in answer.content.decode()
    assert not Recomputation.objects.exists()


def test_a_user_without_permission_does_not_recompute(march: Grid, client: Client) -> None:
    assert client.post(f"{SITE}recompute/", {"month": "2005-03", "reason": "x"}).status_code == 403
    assert client.get(f"{SITE}recompute/").status_code == 405
    assert not Recomputation.objects.exists()


def test_a_profile_can_be_chosen(march: Grid, runner: Client) -> None:
    AvailabilityProfile.objects.create(name="strict")
    record_versions(timezone.now())
    shown = text(runner, f"{SITE}{MONTH}")
    assert "<option>strict-1</option>" in shown
    runner.post(f"{SITE}recompute/", {"month": "2005-03", "reason": "x", "profile": "strict-1"})
    assert "by strict-1 instead of default-1" in text(runner, f"{SITE}{MONTH}")


def test_a_site_that_a_user_may_not_see_does_not_exist(march: Grid, client: Client, runner: Client) -> None:
    Suite.objects.get().viewers.add(Group.objects.create(name="operators"))
    assert "site1" not in text(client, f"/availability/{MONTH}")
    assert client.get(f"{SITE}{MONTH}").status_code == 404
    assert runner.post(f"{SITE}recompute/", {"month": "2005-03", "reason": "x"}).status_code == 404
    assert client.get("/availability/sites/nowhere/").status_code == 404


def test_services_need_the_right_to_see_all_series_of_the_site(
    march: Grid, client: Client, reader: User
) -> None:
    hidden = builders.suite("hidden")
    hidden.viewers.add(Group.objects.create(name="operators"))
    builders.circle("secret", march.resources[:3], suite=hidden)
    shown = text(client, f"{SITE}{MONTH}")
    assert "75.0 %" in shown
    assert '<th scope="row">circle</th>' not in shown
    reader.groups.add(Group.objects.get(name="operators"))
    assert '<th scope="row">circle</th>' in text(client, f"{SITE}{MONTH}")


def test_an_anonymous_user_logs_in(db: None) -> None:
    for page in ("/availability/", SITE, "/availability/recomputations/"):
        assert Client().get(page)["Location"].startswith("/login/")
