"""Stale, imported and unseen results on the overview and on the page of a series."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from monitor.models import Series
from tests.monitor.web.pages import builders


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("age", "probe", "words"),
    [
        (timedelta(minutes=1), "", "all passing"),
        (timedelta(days=1), "", "stale, last passed"),
        (timedelta(minutes=1), "import-lines", "imported, last passed"),
    ],
)
def test_a_result_is_shown_as_fresh_as_it_is(age: timedelta, probe: str, words: str) -> None:
    now: datetime = timezone.now()
    circle = builders.circle("circle-ring", builders.sites(3))
    builders.passed(circle, now - age)
    if probe:
        Series.objects.update(probe=probe, schedule="")
    browser = Client()
    browser.force_login(builders.user())
    overview = browser.get("/").content.decode()
    assert words in overview.lower()
    assert ("All passing" in overview) == (words == "all passing")
    assert ("No current results" in overview) == (words != "all passing")
    page = browser.get("/series/circle-ring/?range=all").content.decode()
    assert (f'class="chip state s-{words.partition(",")[0]}"' in page) == (words != "all passing")


@pytest.mark.django_db
def test_the_head_counts_current_and_stale_series_apart() -> None:
    now = timezone.now()
    fresh, *old = builders.circles(["fresh", "old-1", "old-2"], builders.sites(2))
    builders.passed(fresh, now)
    for series in old:
        builders.passed(series, now - timedelta(days=1))
    browser = Client()
    browser.force_login(builders.user())
    overview = browser.get("/").content.decode()
    assert "1 passing, 2 stale" in overview
    assert 'data-announce="2 series stale"' in overview
