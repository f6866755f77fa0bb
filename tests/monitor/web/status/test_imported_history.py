"""Imported history is never current: it fails at no time now, and tells nothing about the state of a site."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from monitor.analysis.availability.site_states import operational_states, site_states
from monitor.models import Series
from monitor.web.matrix import matrix
from monitor.web.status.series_states import STALE
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def history(now: datetime) -> Series:
    """An imported series whose newest runs failed at a site that nothing else uses."""
    old, other = builders.sites(2)
    series = builders.circle("old-ring", [old, other], schedule="")
    for minute in (5, 3, 1):
        report = builders.report(series, now - minute * MINUTE)
        builders.delivered(builders.failed(report, "transfer_ring", old.name, "Connection refused"))
    Series.objects.filter(pk=series.pk).update(probe="import-lines", enabled=False)
    return series


def reader() -> Client:
    client = Client()
    client.force_login(builders.user())
    return client


def test_an_imported_failure_is_no_failure_of_now(history: Series) -> None:
    browser = reader()
    page = browser.get("/").content.decode()
    assert "All passing" not in page
    assert "No current results" in page
    assert "imported, last failed" in page
    listed = browser.get("/series/").content.decode()
    assert 'class="chip state s-failed past"' in listed


def test_imported_series_are_stale_cells_of_suites(history: Series, now: datetime) -> None:
    overview = matrix.overview_of_groups(builders.user(), now)
    assert (overview.failing_count, overview.stale_count, overview.current_count) == (0, 0, 0)
    cells = [cell for row in overview.rows for cell in row.cells if cell]
    assert cells
    assert {cell.worst for cell in cells} == {STALE}


def test_the_columns_of_imported_series_come_last(history: Series, now: datetime) -> None:
    builders.passed(builders.circle("ring", builders.sites(2)), now - MINUTE)
    overview = matrix.overview_of_series(builders.user(), now)
    assert [detail.name for detail in overview.series] == ["ring", "old-ring"]


def test_a_site_with_imported_results_only_is_unknown(history: Series, now: datetime) -> None:
    user = builders.user()
    names = list(Series.objects.get(pk=history.pk).bindings.values_list("resource__site__name", flat=True))
    assert {str(each.state) for each in site_states(user, names, now).values()} == {"unknown"}
    assert {str(state) for state in operational_states(user, names, now).values()} == {"unknown"}
