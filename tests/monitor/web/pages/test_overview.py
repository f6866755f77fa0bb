"""The overview with a column per series: failures, their sites, and who is at fault."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from monitor.analysis.alerts.evaluate_reporters import evaluate_reporters
from monitor.analysis.alerts.group import group_alerts
from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Incident, MaintenanceWindow, Reporter, Run, Site
from monitor.models.run import State
from monitor.runs.ledger.attribution import Fault
from monitor.web.matrix.content import Overview
from monitor.web.matrix.matrix import overview_of_series
from monitor.web.pages.http.updates import digest_of
from monitor.web.status.incidents import current_incidents
from monitor.web.status.series_details import SeriesCell
from reporters.report import run_id
from tests.monitor import reporter_rows
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

REFUSED = "cannot connect to site2.example.org:22: Connection refused"


def cell(content: Overview, site: str, series: str) -> SeriesCell:
    row = next(row for row in content.rows if row.site == site)
    cells = [cell.series for cell in row.cells if cell and cell.series]
    return next(cell for cell in cells if cell.series == series)


@pytest.fixture
def broken_site2(grid: Grid, now: datetime, minute: timedelta) -> Run:
    """Gather passed once, then failed at site2."""
    builders.passed(grid.gather, now - 2 * minute)
    report = builders.report(grid.gather, now - minute)
    return builders.delivered(builders.failed(report, "transfer_data", "site2-login", REFUSED))


def test_a_failure_counts_as_here_at_its_site_and_as_elsewhere_at_others(
    broken_site2: Run, reader: User, now: datetime
) -> None:
    content = overview_of_series(reader, now)
    assert cell(content, "site2", "gather-main").words == "failed here"
    assert cell(content, "site1", "gather-main").words == "failed elsewhere"
    assert {row.site: row.failing for row in content.rows} == {"site1": 0, "site2": 1, "site3": 0, "site4": 0}


def test_failing_series_are_listed_with_site_stage_and_reason(
    broken_site2: Run, client: Client, now: datetime
) -> None:
    text = client.get("/").content.decode()
    assert "Failing now" in text
    assert "failed in transfer_data" in text
    assert REFUSED in text
    assert f"/runs/{broken_site2.pk}/" in text


def test_a_failure_of_an_incident_is_listed_as_the_incident_alone(
    broken_site2: Run, grid: Grid, client: Client, reader: User, now: datetime
) -> None:
    builders.delivered(builders.failed(builders.report(grid.gather, now), "init", "site2-login", REFUSED))
    classify_runs(now)
    update_incidents(now)
    content = overview_of_series(reader, now)
    (incident,) = content.incidents.open
    assert (incident.place, incident.series_count, incident.is_new) == ("at site2", 1, True)
    assert (list(content.failing), content.failing_count, content.failing_alone_count) == ([], 1, 0)
    text = client.get("/").content.decode()
    assert f"/incidents/{incident.key}/" in text
    assert text.index("1 open incident") < text.index('aria-label="Filter series"')
    assert current_incidents(AnonymousUser(), now).open_count == 0


def test_a_first_failure_by_the_cause_of_an_incident_is_listed_under_the_incident(
    broken_site2: Run, grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    builders.delivered(builders.failed(builders.report(grid.gather, now), "init", "site2-login", REFUSED))
    classify_runs(now)
    update_incidents(now)
    report = builders.report(grid.circle, now)
    builders.delivered(builders.failed(report, "transfer_ring", "site2-login", REFUSED))
    classify_runs(now)
    content = overview_of_series(reader, now)
    (incident,) = content.incidents.open
    assert (incident.series_count, content.failing_count, content.failing_alone_count) == (2, 2, 0)
    other = builders.report(grid.circle, now + minute)
    builders.delivered(builders.failed(other, "transfer_ring", "site3-login", REFUSED))
    classify_runs(now + minute)
    content = overview_of_series(reader, now + minute)
    assert (content.incidents.open[0].series_count, content.failing_alone_count) == (1, 1)


@pytest.mark.parametrize(
    ("opened_hours_ago", "resolved_hours_ago", "expected"),
    [(1, None, (1, 0, 0)), (30, None, (0, 0, 1)), (30, 1, (0, 1, 0)), (2, 1, (0, 1, 0)), (50, 30, (0, 0, 0))],
)
def test_incidents_since_yesterday_are_new_fixed_or_still_failing(
    db: None,
    now: datetime,
    opened_hours_ago: int,
    resolved_hours_ago: int | None,
    expected: tuple[int, int, int],
) -> None:
    hour = timedelta(hours=1)
    opened_at = now - opened_hours_ago * hour
    resolved_at = None if resolved_hours_ago is None else now - resolved_hours_ago * hour
    Incident.objects.create(kind="", name="", since=opened_at, opened_at=opened_at, resolved_at=resolved_at)
    changes = current_incidents(User(is_superuser=True, is_active=True), now).changes[0]
    assert (changes.new, changes.fixed, changes.still_open) == expected


def test_a_filter_lists_series_also_if_there_are_few(grid: Grid, client: Client) -> None:
    text = client.get("/", {"text": "RING"}).content.decode()
    assert "/series/circle-ring/" in text
    assert "/series/gather-main/" not in text


def test_the_page_says_all_passing_if_every_last_run_passed(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.passed(grid.gather, now)
    assert "All passing" in client.get("/").content.decode()


def test_a_cell_shows_the_last_run_that_was_not_skipped(
    broken_site2: Run, grid: Grid, reader: User, now: datetime
) -> None:
    builders.not_run(grid.gather, now, State.SKIPPED, "overlap")
    last = cell(overview_of_series(reader, now), "site2", "gather-main").last
    assert last is not None
    assert last.run == broken_site2.pk


def test_a_cell_names_the_rule_of_a_site_policy_that_skips_the_series(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(grid.gather, now - 2 * minute)
    for series in (grid.gather, grid.circle):
        builders.not_run(
            series, now - minute, State.SKIPPED, f"policy: the probe {series.probe} is forbidden"
        )
    text = client.get("/").content.decode()
    assert '<span class="rule">now skipped, site policy: the probe gather is forbidden</span>' in text
    (skipped,) = [cell for cell in text.split("<td ") if "site policy: the probe circle" in cell][:1]
    assert "s-skipped" in skipped
    assert '<span class="words">skipped</span>' in skipped
    assert "no run yet" not in text
    assert "All passing" in text
    assert "skipped (site policy, pause, maintenance)" in text


def test_a_skip_without_a_policy_stands_in_a_cell_only_before_the_first_run(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(grid.gather, now - 2 * minute)
    for series in (grid.gather, grid.circle):
        builders.not_run(series, now - minute, State.SKIPPED, "the previous run lasts")
    text = client.get("/").content.decode()
    assert text.count('<span class="rule">the previous run lasts</span>') == 3  # the sites of circle


def test_a_missed_slot_is_a_monitoring_fault(grid: Grid, reader: User, now: datetime) -> None:
    builders.not_run(grid.gather, now, State.MISSED, "no reporter took it")
    content = overview_of_series(reader, now)
    assert cell(content, "site1", "gather-main").fault == Fault.MONITOR
    assert [failing.is_ours for failing in content.failing] == [True]


def test_failing_series_count_consecutive_failures_without_skipped_runs(
    broken_site2: Run, grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    again = builders.failed(builders.report(grid.gather, now), "init", "site2-login", REFUSED)
    builders.not_run(grid.gather, now - minute / 2, State.SKIPPED, "overlap")
    builders.delivered(again)
    assert [failing.consecutive for failing in overview_of_series(reader, now).failing] == [2]


def test_a_trend_has_the_last_twenty_runs_oldest_first(
    grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    for number in range(25):
        builders.not_run(grid.circle, now - number * minute, State.MISSED, "")
    builders.passed(grid.circle, now + minute)
    trend = cell(overview_of_series(reader, now), "site1", "circle-ring").trend
    assert len(trend) == 20
    assert [state for state, _ in trend[-2:]] == [State.MISSED, State.PASSED]


def test_a_site_that_a_series_does_not_use_has_no_cell_of_it(grid: Grid, reader: User, now: datetime) -> None:
    content = overview_of_series(reader, now)
    row = next(row for row in content.rows if row.site == "site4")
    assert row.cells[list(content.columns).index("circle-ring")] is None
    assert row.cells[list(content.columns).index("gather-main")] is not None


def test_the_head_of_a_column_shows_the_forecast_with_its_interval(
    grid: Grid, reader: User, client: Client, now: datetime
) -> None:
    builders.history(grid.circle, 12, until=now - timedelta(minutes=1))
    outlook = next(
        series.outlook for series in overview_of_series(reader, now).series if series.name == "circle-ring"
    )
    assert outlook is not None
    assert outlook.lower < outlook.median < outlook.upper
    text = client.get("/").content.decode()
    assert f"<b>{outlook.median:.1f} s</b>" in text
    assert f"{outlook.lower:.1f} to {outlook.upper:.1f} s, 80 %" in text
    assert '<svg class="sparkline"' in text


def test_a_running_run_shows_its_stage(grid: Grid, client: Client, now: datetime) -> None:
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
    content = overview_of_series(reader, now)
    assert content.runs == 3
    assert content.passed_share == 0.5


def test_without_series_the_page_explains_how_to_create_them(client: Client) -> None:
    text = client.get("/").content.decode()
    assert "No series yet" in text
    assert "make demo" in text


def test_a_reader_does_not_see_the_series_of_others(grid: Grid, client: Client, now: datetime) -> None:
    closed = builders.suite("closed")
    closed.viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    text = client.get("/").content.decode()
    assert "circle-ring" in text
    assert "secret-ring" not in text


def disks(now: datetime, *sites: str) -> MaintenanceWindow:
    """Two hours of maintenance at *sites* that began an hour ago."""
    hour = timedelta(hours=1)
    window = MaintenanceWindow.objects.create(
        name="disks", title="new disks", starts_at=now - hour, ends_at=now + hour
    )
    window.sites.set(Site.objects.filter(name__in=sites))
    return window


def test_maintenance_is_shown_above_the_table_at_its_site_and_at_its_series(
    grid: Grid, client: Client, reader: User, now: datetime
) -> None:
    disks(now, "site4")
    content = overview_of_series(reader, now)
    words = f"in maintenance until {now + timedelta(hours=1):%Y-%m-%d %H:%M} UTC: new disks"
    assert [(window.where, window.words) for window in content.maintenance] == [("site4", words)]
    assert {row.site: row.maintenance for row in content.rows} == {
        "site1": "",
        "site2": "",
        "site3": "",
        "site4": words,
    }
    assert {series.name: series.held for series in content.series} == {
        "gather-main": words,
        "circle-ring": "",
    }
    assert client.get("/").content.decode().count(words) >= 3


def test_maintenance_everywhere_is_listed_once_and_shown_at_every_site(
    grid: Grid, reader: User, now: datetime
) -> None:
    disks(now)
    content = overview_of_series(reader, now)
    assert [window.where for window in content.maintenance] == ["everywhere"]
    assert all(row.maintenance for row in content.rows)
    assert all(series.held for series in content.series)


def test_the_digest_changes_when_maintenance_begins_and_ends(
    grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    before = digest_of(overview_of_series(reader, now))
    disks(now, "site4")
    during = digest_of(overview_of_series(reader, now))
    assert during != before
    assert digest_of(overview_of_series(reader, now + minute)) == during
    assert digest_of(overview_of_series(reader, now + 60 * minute)) == before


def test_a_page_that_is_current_gets_no_content(
    broken_site2: Run, client: Client, reader: User, now: datetime
) -> None:
    htmx_headers = {"headers": {"HX-Request": "true"}}
    part = client.get("/", **htmx_headers).content.decode()  # type: ignore[arg-type]
    assert part.startswith('<div id="overview"')
    digest = digest_of(overview_of_series(reader, now))
    assert f"seen={digest}" in part
    assert client.get("/", {"seen": digest}, **htmx_headers).status_code == 204  # type: ignore[arg-type]


def test_a_new_run_changes_the_digest_and_time_alone_does_not(
    broken_site2: Run, grid: Grid, reader: User, now: datetime, minute: timedelta
) -> None:
    before = digest_of(overview_of_series(reader, now))
    assert digest_of(overview_of_series(reader, now + minute / 6)) == before
    builders.passed(grid.gather, now)
    assert digest_of(overview_of_series(reader, now)) != before


def test_reasons_of_reports_are_escaped(grid: Grid, client: Client, now: datetime) -> None:
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
    for series in builders.circles([f"ring-{number}" for number in range(10)], resources):
        builders.passed(series, now - minute)
    with_ten = queries_for(client)
    for series in builders.circles([f"ring-{number}" for number in range(10, 40)], resources):
        builders.passed(series, now - minute)
    assert queries_for(client) == with_ten
    assert with_ten <= 27


def test_an_open_alert_of_a_reporter_is_an_incident_of_no_series(
    grid: Grid, client: Client, reader: User, now: datetime, minute: timedelta
) -> None:
    """The alert joins an incident without a series: the page had failed for every user."""
    reporter_rows.enrolled("ncsa", now - 60 * minute)
    grid.circle.reporter = Reporter.objects.get(name="ncsa")
    grid.circle.save()
    evaluate_reporters(now)
    group_alerts(now)
    assert client.get("/").status_code == 200
    (incident,) = current_incidents(reader, now).open
    assert (incident.title, incident.place, incident.series_count) == ("Reporter silent", "reporter ncsa", 0)
