"""The table of runs: filters, pages, causes, and the file of it."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from monitor.analysis.outcomes import run_list
from monitor.analysis.outcomes.run_list import RunFilter, page_of_runs, selected_runs
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Run
from monitor.models.run import State
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def text(client: Client, **query: str) -> str:
    answer = client.get("/runs/", query)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def runs(grid: Grid, now: datetime, minute: timedelta) -> dict[str, Run]:
    sent = builders.report(grid.circle, now - 2 * minute)
    failed = builders.delivered(builders.failed(sent, "transfer_ring", "site2-login", "Disk quota exceeded"))
    found = {
        "passed": builders.passed(grid.gather, now - minute),
        "failed": failed,
        "skipped": builders.not_run(grid.gather, now - 3 * minute, State.SKIPPED, "paused by ada: disks"),
        "old": builders.passed(grid.circle, now - timedelta(days=3)),
    }
    classify_runs(now)
    failed.refresh_from_db()
    return found


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, {"passed", "failed", "skipped"}),
        ({"range": "7d"}, {"passed", "failed", "skipped", "old"}),
        ({"site": "site4"}, {"passed", "skipped"}),
        ({"series": "RING"}, {"failed"}),
        ({"outcome": "skipped"}, {"skipped"}),
        ({"outcome": "not_passed"}, {"failed"}),
        ({"outcome": "in_progress"}, set()),
        ({"outcome": "nonsense", "before": "nonsense"}, {"passed", "failed", "skipped"}),
        ({"stage": "transfer_ring"}, {"failed"}),
        ({"signature": "disk-quota"}, {"failed"}),
        ({"signature": "unheard-of"}, set()),
        ({"series": "\x00"}, {"passed", "failed", "skipped"}),
    ],
)
def test_the_query_string_selects_the_runs(
    runs: dict[str, Run], client: Client, query: dict[str, str], shown: set[str]
) -> None:
    assert runs["failed"].signature is not None
    if query.get("signature") == "disk-quota":
        query = {"signature": runs["failed"].signature.name}
    page = text(client, **query)
    assert {name for name, run in runs.items() if f"/runs/{run.pk}/" in page} == shown


def test_a_part_of_many_names_selects_the_same_runs(
    runs: dict[str, Run], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_list, "MOST_LISTED_SERIES", 0)
    page = text(client, series="RING")
    assert {name for name, run in runs.items() if f"/runs/{run.pk}/" in page} == {"failed"}


def test_causes_are_counted_and_skipped_runs_say_why(runs: dict[str, Run], client: Client) -> None:
    page = text(client)
    assert runs["failed"].signature is not None
    assert "Failures by cause" in page
    assert f"signature={runs['failed'].signature.name}" in page
    assert "paused by ada: disks" in page
    assert "Failures by cause" not in text(client, outcome="passed")


def test_the_resource_that_failed_leads_to_its_page(runs: dict[str, Run], client: Client) -> None:
    link = '<a class="resource" href="/sites/site2/resources/site2-login/?range=24h">site2-login</a>'
    assert link in text(client)
    Run.objects.filter(pk=runs["failed"].pk).update(failed_resource="gone")
    assert '<td data-label="Resource">gone</td>' in text(client)


def test_runs_of_invisible_series_are_not_listed(runs: dict[str, Run], client: Client) -> None:
    builders.suite("main").viewers.add(Group.objects.create(name="physicists"))
    assert "No run ended in this range" in text(client)
    assert "clear the filters" in text(client, site="site1")


def test_an_invalid_time_of_day_is_named(runs: dict[str, Run], client: Client) -> None:
    assert "expected a time of day such as 14:00" in text(client, from_time="25:00")


@pytest.mark.parametrize(
    ("zone", "first", "last", "hours"),
    [
        ("UTC", time(10), time(12), [11, 10]),
        ("Europe/Berlin", time(14), None, [14, 13]),  # UTC + 1
        ("UTC", time(14), time(11), [14, 10]),  # over midnight
        ("UTC", None, time(10, 30), [10]),
    ],
)
def test_the_time_of_day_is_one_of_the_readers_zone(
    grid: Grid, zone: str, first: time | None, last: time | None, hours: list[int]
) -> None:
    for hour in range(10, 15):
        builders.not_run(grid.circle, NOON.replace(hour=hour), State.MISSED, "")
    chosen = RunFilter(end=NOON + timedelta(days=1), zone=ZoneInfo(zone), from_time=first, to_time=last)
    found, _ = page_of_runs(selected_runs(chosen, builders.user("ada")), "", 50)
    assert [run.slot.hour for run in found] == hours


def test_pages_list_each_run_once_even_at_equal_times(grid: Grid) -> None:
    circles = builders.circles([f"ring-{number}" for number in range(5)], grid.resources[:2])
    for series in circles:
        builders.not_run(series, NOON, State.MISSED, "")
    runs = selected_runs(RunFilter(end=NOON + timedelta(days=1), zone=UTC), builders.user("ada"))
    found, cursor = page_of_runs(runs, "", 2)
    while cursor:
        more, cursor = page_of_runs(runs, cursor, 2)
        found += more
    assert len(found) == len({run.pk for run in found}) == 5


def test_the_file_has_the_selected_runs(runs: dict[str, Run], client: Client) -> None:
    answer = client.get("/runs/runs.csv", {"outcome": "failed"})
    assert answer["Content-Disposition"].startswith('attachment; filename="runs-24h-')
    (row,) = csv.DictReader(answer.content.decode().splitlines())
    assert (row["series"], row["outcome"], row["stage"]) == ("circle-ring", "failed", "transfer_ring")
