"""The overview: what is broken, where, and whose fault it is."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from monitor.ledger.attribution import Fault
from monitor.models import MaintenanceWindow, Run, Site
from monitor.models.run import State
from monitor.overview.grid import Cell, Overview, overview
from reporters.report import run_id
from tests.monitor.pages import builders
from tests.monitor.pages.conftest import Grid

REFUSED = "cannot connect to site2.example.org:22: Connection refused"


def cell(content: Overview, site: str, series: str) -> Cell:
    row = next(row for row in content.rows if row.site == site)
    return next(cell for cell in row.cells if cell and cell.series == series)


@pytest.fixture
def broken_site2(grid: Grid, now: datetime, minute: timedelta) -> Run:
    """Gather passed once, and then failed at site2."""
    builders.passed(grid.gather, now - 2 * minute)
    report = builders.report(grid.gather, now - minute)
    return builders.delivered(builders.failed(report, "transfer_data", "site2-login", REFUSED))


def test_a_failure_is_blamed_on_its_site_and_muted_at_the_others(
    broken_site2: Run, reader: User, now: datetime
) -> None:
    content = overview(reader, now)
    assert cell(content, "site2", "gather-main").words == "failed here"
    assert cell(content, "site1", "gather-main").words == "failed elsewhere"
    assert {row.site: row.failing for row in content.rows} == {"site1": 0, "site2": 1, "site3": 0, "site4": 0}


def test_what_does_not_work_is_listed_with_place_stage_and_cause(
    broken_site2: Run, client: Client, now: datetime
) -> None:
    text = client.get("/").content.decode()
    assert "Not working now" in text
    assert "failed in transfer_data" in text
    assert REFUSED in text
    assert f"/runs/{broken_site2.pk}/" in text


def test_when_every_last_run_passed_the_page_says_so(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.gather, now)
    assert "Everything works" in client.get("/").content.decode()


def test_a_cell_shows_the_last_telling_run_not_a_skipped_one(
    broken_site2: Run, grid: Grid, reader: User, now: datetime
) -> None:
    builders.not_run(grid.gather, now, State.SKIPPED, "overlap")
    last = cell(overview(reader, now), "site2", "gather-main").last
    assert last is not None
    assert last.run == broken_site2.pk


def test_a_slot_that_nobody_took_is_our_own_fault(grid: Grid, reader: User, now: datetime) -> None:
    builders.not_run(grid.gather, now, State.MISSED, "no reporter took it")
    content = overview(reader, now)
    assert cell(content, "site1", "gather-main").whose == Fault.MONITOR
    assert [trouble.ours for trouble in content.troubles] == [True]


def test_troubles_count_how_often_in_a_row(
    broken_site2: Run, grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    again = builders.failed(builders.report(grid.gather, now), "init", "site2-login", REFUSED)
    builders.not_run(grid.gather, now - minute / 2, State.SKIPPED, "overlap")
    builders.delivered(again)
    assert [trouble.in_a_row for trouble in overview(reader, now).troubles] == [2]


def test_a_trend_has_the_last_twenty_runs_oldest_first(
    grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    for number in range(25):
        builders.not_run(grid.circle, now - number * minute, State.MISSED, "")
    builders.passed(grid.circle, now + minute)
    trend = cell(overview(reader, now), "site1", "circle-ring").trend
    assert len(trend) == 20
    assert [state for state, _ in trend[-2:]] == [State.MISSED, State.PASSED]


def test_a_site_that_takes_no_part_in_a_series_has_no_cell_of_it(
    grid: Grid, reader: User, now: datetime
) -> None:
    content = overview(reader, now)
    row = next(row for row in content.rows if row.site == "site4")
    names = [column.name for column in content.columns]
    assert row.cells[names.index("circle-ring")] is None
    assert row.cells[names.index("gather-main")] is not None


def test_the_head_of_a_series_has_its_forecast_with_the_interval(
    grid: Grid, reader: User, client: Client, now: datetime
) -> None:
    builders.history(grid.circle, 12, until=now - timedelta(minutes=1))
    outlook = next(c.outlook for c in overview(reader, now).columns if c.name == "circle-ring")
    assert outlook is not None
    assert outlook.lower < outlook.median < outlook.upper
    text = client.get("/").content.decode()
    assert f"<b>{outlook.median:.1f} s</b>" in text
    assert f"{outlook.lower:.1f} s to {outlook.upper:.1f} s, 80 %" in text
    assert '<svg class="sparkline"' in text


def test_a_run_under_way_shows_its_stage(grid: Grid, client: Client, now: datetime) -> None:
    Run.objects.create(
        id=run_id(grid.gather.name, now), series=grid.gather, slot=now, due_at=now, state=State.RUNNING,
        started_at=now, stage="queue_wait",
    )  # fmt: skip
    assert "queue_wait" in client.get("/").content.decode()


def test_the_runs_of_the_last_hour_are_counted(
    broken_site2: Run, grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    builders.passed(grid.circle, now - 61 * minute)
    builders.not_run(grid.circle, now, State.SKIPPED, "overlap")
    content = overview(reader, now)
    assert content.runs == 3
    assert content.passed_share == 0.5


def test_without_a_series_the_page_says_what_to_do(client: Client) -> None:
    text = client.get("/").content.decode()
    assert "Nothing is watched yet" in text
    assert "make demo" in text


def test_a_reader_does_not_see_the_series_of_others(grid: Grid, client: Client, now: datetime) -> None:
    closed = builders.suite("closed")
    closed.viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    text = client.get("/").content.decode()
    assert "circle-ring" in text
    assert "secret-ring" not in text


def disks(now: datetime, *sites: str) -> MaintenanceWindow:
    """Two hours of work at *sites* that began an hour ago."""
    hour = timedelta(hours=1)
    work = MaintenanceWindow.objects.create(
        name="disks", title="new disks", starts_at=now - hour, ends_at=now + hour
    )
    work.sites.set(Site.objects.filter(name__in=sites))
    return work


def test_planned_work_is_said_above_the_grid_at_its_site_and_at_its_series(
    grid: Grid, client: Client, reader: User, now: datetime
) -> None:
    disks(now, "site4")
    content = overview(reader, now)
    said = f"in maintenance until {now + timedelta(hours=1):%Y-%m-%d %H:%M} UTC: new disks"
    assert [(work.where, work.words) for work in content.works] == [("site4", said)]
    assert {row.site: row.work for row in content.rows} == {
        "site1": "",
        "site2": "",
        "site3": "",
        "site4": said,
    }
    assert {column.name: column.held for column in content.columns} == {
        "gather-main": said,
        "circle-ring": "",
    }
    assert client.get("/").content.decode().count(said) > 3


def test_work_everywhere_is_said_once_and_at_every_site(grid: Grid, reader: User, now: datetime) -> None:
    disks(now)
    content = overview(reader, now)
    assert [work.where for work in content.works] == ["everywhere"]
    assert all(row.work for row in content.rows)
    assert all(column.held for column in content.columns)


def test_when_work_begins_and_ends_the_page_is_sent_anew(
    grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    before = overview(reader, now).digest
    disks(now, "site4")
    during = overview(reader, now).digest
    assert during != before
    assert overview(reader, now + minute).digest == during
    assert overview(reader, now + 60 * minute).digest == before


def test_who_has_seen_the_newest_is_sent_nothing(
    broken_site2: Run, client: Client, reader: User, now: datetime
) -> None:
    asked = {"headers": {"HX-Request": "true"}}
    part = client.get("/", **asked).content.decode()  # type: ignore[arg-type]
    assert part.startswith('<div id="overview"')
    seen = overview(reader, now).digest
    assert f"seen={seen}" in part
    assert client.get("/", {"seen": seen}, **asked).status_code == 204  # type: ignore[arg-type]


def test_news_change_the_digest_and_time_alone_does_not(
    broken_site2: Run, grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    before = overview(reader, now).digest
    assert overview(reader, now + minute / 6).digest == before
    builders.passed(grid.gather, now)
    assert overview(reader, now).digest != before


def test_reasons_from_outside_are_text_and_not_html(grid: Grid, client: Client, now: datetime) -> None:
    evil = '<script>alert("x")</script>" onmouseover="alert(1)'
    builders.delivered(builders.failed(builders.report(grid.gather, now), "init", "site2-login", evil))
    text = client.get("/").content.decode()
    assert "<script>alert" not in text
    assert '" onmouseover="' not in text


def queries_for(client: Client) -> int:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert client.get("/").status_code == 200
    return len(queries)


def test_forty_series_need_no_more_queries_than_ten(client: Client, now: datetime, minute: timedelta) -> None:
    resources = builders.sites(5)
    for number in range(10):
        builders.passed(builders.circle(f"ring-{number}", resources), now - minute)
    with_ten = queries_for(client)
    for number in range(10, 40):
        builders.passed(builders.circle(f"ring-{number}", resources), now - minute)
    assert queries_for(client) == with_ten
    assert with_ten <= 20
