"""The page of a series, the data of its charts, and its downloads."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pyarrow import parquet

from monitor.analysis.forecasts import refresh
from monitor.depot.samples import formats
from monitor.models import Alert, AlertRule, Forecast, MaintenanceWindow, Run, Series
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.runs.fleet.assignment import current_assignment
from monitor.runs.ledger.holds import hold
from monitor.web.charts import chart_choice
from monitor.web.charts.chart_choice import ChartChoice
from monitor.web.charts.chart_table import FILES
from monitor.web.charts.series_chart import RunChart, chart
from monitor.web.charts.time_range import PageRange, relative
from tests.monitor import reporter_rows
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

HTMX = {"HX-Request": "true"}


def page(client: Client, name: str, **query: str) -> str:
    answer = client.get(f"/series/{name}/", query)
    assert answer.status_code == 200
    return answer.content.decode()


def chart_data(text: str) -> dict[str, Any]:
    shown = re.search(r'<script id="chart-data" type="application/json">(.+?)</script>', text, re.DOTALL)
    assert shown is not None
    data: dict[str, Any] = json.loads(shown[1])
    return data


def rows(client: Client, name: str, **query: str) -> list[dict[str, str]]:
    answer = client.get(f"/series/{name}/samples.csv", query)
    assert isinstance(answer, StreamingHttpResponse)
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def test_the_page_shows_probe_schedule_sites_and_parameters(grid: Grid, client: Client) -> None:
    text = page(client, "gather-main")
    for part in ("Collects a file from every source", "H/2 * * * *", "site1", "site4-login", "Destination"):
        assert part in text
    assert "1 MB" in text  # a parameter, with its unit
    assert "30 min <small>default</small>" in text  # a default


def test_a_series_whose_probe_is_not_installed_shows_its_history(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.passed(grid.gather, now)
    Series.objects.filter(pk=grid.gather.pk).update(probe="removed")
    text = page(client, "gather-main")
    assert "This probe is not installed." in text
    categories = {stage["name"]: stage["category"] for stage in chart_data(text)["stages"]}
    assert (categories["queue_wait"], categories["compute"]) == ("queue", "compute")


def test_without_a_passed_run_the_page_says_why_there_is_no_forecast(grid: Grid, client: Client) -> None:
    assert "No run has passed yet" in page(client, "gather-main")


def test_with_too_few_runs_the_page_says_how_many_there_are(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.passed(grid.gather, now)
    assert "1 run has passed so far: the first forecast is being computed." in page(client, "gather-main")
    refresh.refresh_all(now + timedelta(minutes=1))
    assert "1 run has passed so far: too few to forecast from." in page(client, "gather-main")


def test_a_series_of_an_agent_without_an_assignment_has_nothing_scheduled(
    grid: Grid, client: Client, now: datetime
) -> None:
    ncsa = reporter_rows.remote("ncsa")
    Series.objects.filter(pk=grid.circle.pk).update(reporter=ncsa)
    assert 'the agent of <a href="/reporters/ncsa/">ncsa</a> has no assignment yet' in page(
        client, "circle-ring"
    )
    assert "no agent yet" in client.get("/").content.decode()
    current_assignment(ncsa, now)
    assert "Nothing scheduled." in page(client, "circle-ring")
    assert "no agent yet" not in client.get("/").content.decode()


def test_a_slot_of_an_agent_is_not_overdue_while_its_report_may_come(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.not_run(grid.circle, now - timedelta(minutes=1), State.EXPECTED, "")
    assert "overdue by" in page(client, "circle-ring")
    Series.objects.filter(pk=grid.circle.pk).update(reporter=reporter_rows.remote("ncsa"))
    text = page(client, "circle-ring")
    assert "not reported yet" in text
    assert "overdue by" not in text


def test_a_forecast_is_shown_with_its_interval_and_track_record(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.history(grid.circle, 12, until=now)
    newest = Forecast.objects.filter(metric__name="total.seconds").order_by("-last_time")[0]
    text = page(client, "circle-ring")
    assert f'<p class="big">{newest.median:.1f} s</p>' in text
    assert f"{newest.lower:.1f} to {newest.upper:.1f} s" in text
    assert re.search(r"\d+ % of \d+ inside the 80 % interval, mean error [\d.]+ s", text)


def test_the_table_behind_the_chart_has_every_run_in_pages(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    runs = [builders.not_run(grid.circle, now - number * minute, State.MISSED, "") for number in range(1, 36)]
    text = page(client, "circle-ring")
    assert "Rows 1 to 30 of 35, newest first" in text
    older = client.get("/series/circle-ring/?rows=2").content.decode()
    assert "Rows 31 to 35 of 35, newest first" in older
    assert '<details class="behind" id="data-of-durations-of-runs-by-stage" open>' in older
    assert f"{runs[-1].slot:%Y-%m-%dT%H:%M:%SZ}" in older
    assert 'href="?rows=1#data-of-durations-of-runs-by-stage" rel="prev"' in older
    assert "Rows 31 to 35" in client.get("/series/circle-ring/?rows=99").content.decode()


def test_the_chart_has_every_stage_of_every_run_in_order(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(grid.gather, now - minute, slowness=2.0)
    builders.passed(grid.gather, now)
    data = chart_data(page(client, "gather-main"))
    assert [stage["name"] for stage in data["stages"]] == list(builders.GATHER)
    assert data["seconds"]["queue_wait"] == [7.2, 3.6]
    assert data["totals"] == pytest.approx([22.4, 11.2])


def test_an_update_has_the_drawing_of_each_chart_and_the_same_downloads(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.passed(grid.gather, now)
    whole = page(client, "gather-main", range="24h")
    part = client.get(
        "/series/gather-main/", {"range": "24h", "seen": "older"}, headers=HTMX
    ).content.decode()
    for text in (whole, part):
        assert text.count('<div class="drawn"') == 2  # history and rates
        assert text.count('class="bar-of-stage') == len(builders.GATHER)
        assert '/series/gather-main/chart.csv?range=24h"' in text


def test_a_failed_run_has_its_reason_and_its_completed_stages(
    grid: Grid, client: Client, now: datetime
) -> None:
    run = builders.delivered(
        builders.failed(builders.report(grid.gather, now), "compute", "site3-login", "killed")
    )
    data = chart_data(page(client, "gather-main"))
    assert data["runs"][0]["state"] == "failed"
    assert data["runs"][0]["reason"] == "compute at site3-login: killed"
    assert data["runs"][0]["url"] == f"/runs/{run.pk}/"
    assert data["totals"] == [None]
    assert data["seconds"]["compute"] == [1.1]
    assert data["seconds"]["transfer_results"] == [None]


def test_a_forecast_is_drawn_at_its_run(grid: Grid, client: Client, now: datetime) -> None:
    runs = builders.history(grid.circle, 12, until=now)
    data = chart_data(page(client, "circle-ring"))
    drawn = [forecast["time"] for forecast in data["forecasts"]]
    assert drawn[-1] == f"{runs[-1].slot:%Y-%m-%d %H:%M:%S.%f}"
    assert len(set(drawn)) == len(drawn)
    assert all(f["lower"] <= f["median"] <= f["upper"] for f in data["forecasts"])


def test_the_forecast_of_the_next_run_is_drawn_at_its_slot(grid: Grid, client: Client, now: datetime) -> None:
    builders.history(grid.circle, 12, until=now)
    builders.not_run(grid.circle, now + timedelta(minutes=2), State.EXPECTED, "")
    pending = chart_data(page(client, "circle-ring"))["pending"]
    assert pending["time"].startswith(f"{now + timedelta(minutes=2):%Y-%m-%d %H:%M:%S}")


def test_a_due_run_says_by_how_much_it_is_overdue(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    run = builders.not_run(grid.circle, now + 9 * minute, State.EXPECTED, "")
    assert re.search(r">next run in [89] min</time>", page(client, "circle-ring"))
    Run.objects.filter(pk=run.pk).update(slot=now - 5 * minute)
    assert re.search(r">overdue by \d+ min</time></a>, waiting for the reporter", page(client, "circle-ring"))


def test_transfer_rates_have_their_own_chart(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.gather, now)
    rates = chart_data(page(client, "gather-main"))["rates"]
    assert set(rates) == {"transfer.site1-login.bytes_per_second", "transfer.site2-login.bytes_per_second"}


def test_the_data_of_each_chart_stand_in_a_table(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.circle, now)
    text = page(client, "circle-ring")
    table = re.search(
        r'<caption class="visually-hidden">Durations of runs by stage(.+?)</table>', text, re.DOTALL
    )
    assert table is not None
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", table[1])
    assert cells[:4] == ["Scheduled", "State", "init", "stage_data"]
    assert {"passed", "1.4 s", "6.8 s"} <= set(cells)
    assert any(f"{now:%Y-%m-%d %H:%M:%S} <span" in cell for cell in cells)


def test_a_chart_and_its_table_have_the_times_of_the_reader_with_utc_beside(
    grid: Grid, client: Client, now: datetime
) -> None:
    noon = now.replace(hour=12, minute=0, second=0) - timedelta(days=1)
    builders.passed(grid.gather, noon)
    client.cookies["timezone"] = "Asia/Tokyo"
    text = page(client, "gather-main")
    data = chart_data(text)
    assert (data["zone"], data["runs"][0]["slot"]) == ("Asia/Tokyo", f"{noon:%Y-%m-%d} 21:00:00.000000")
    assert data["runs"][0]["utc"] == f"{noon:%Y-%m-%d} 12:00:00 UTC"
    assert f'{noon:%Y-%m-%d} 21:00:00 <span class="zone">12:00:00 UTC</span>' in text
    hours = chart_data(page(client, "gather-main", interval="hour"))
    assert (hours["zone"], hours["intervals"][0]["time"]) == ("Asia/Tokyo", [f"{noon:%Y-%m-%d} 21:00:00"])
    days = chart_data(page(client, "gather-main", interval="day"))
    assert (days["zone"], days["intervals"][0]["time"]) == ("UTC", [f"{noon:%Y-%m-%d} 00:00:00"])


def test_a_link_chooses_the_range(grid: Grid, client: Client, now: datetime, minute: timedelta) -> None:
    builders.passed(grid.gather, now - 90 * minute)
    builders.passed(grid.gather, now)
    assert len(chart_data(page(client, "gather-main", range="1h"))["runs"]) == 1
    assert len(chart_data(page(client, "gather-main", range="24h"))["runs"]) == 2


def test_a_long_range_has_median_band_and_failures_by_day(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    noon = now.replace(hour=12, minute=0, second=0)
    day = timedelta(days=1)
    for age, slowness in ((3 * day, 1.0), (3 * day - minute, 3.0), (2 * day, 2.0), (400 * day, 9.0)):
        builders.passed(grid.gather, noon - age, slowness=slowness)
    builders.not_run(grid.gather, noon - 2 * day + minute, State.MISSED, "no report")
    data = chart_data(page(client, "gather-main", range="1y"))
    assert (data["runs"], data["interval"]) == ([], "day")
    (part,) = data["intervals"]
    assert part["time"] == [f"{noon - age * day:%Y-%m-%d} 00:00:00" for age in (3, 2)]
    assert part["passed"] == [2, 1]
    assert (part["lowest"][0], part["highest"][0]) == (pytest.approx(11.2), pytest.approx(33.6))
    assert part["median"] == pytest.approx([11.2, 22.4], rel=0.01)
    assert (data["counts"]["runs"], data["counts"]["failed"]) == ([2, 2], [0, 1])
    assert data["seconds"]["queue_wait"] == pytest.approx([7.2, 7.2])
    whole = chart_data(page(client, "gather-main", range="all"))
    assert len(whole["intervals"][0]["time"]) == 3


def test_more_runs_than_bars_are_drawn_by_hour(
    grid: Grid, now: datetime, minute: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_choice, "MOST_RUNS", 3)
    for number in range(4):
        builders.passed(grid.circle, now - number * minute)
    day, by_run = relative("24h", now + minute), ChartChoice(interval="run")
    assert chart(grid.circle, day, None).interval == "hour"
    assert chart(grid.circle, day, None, by_run).interval == "run"


def test_a_metric_is_picked_in_the_query_string(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.gather, now)
    data = chart_data(page(client, "gather-main", metric="stage.queue_wait.seconds", scale="log"))
    assert (data["metric"], data["scale"], data["stages"]) == ("stage.queue_wait.seconds", "log", [])
    assert data["totals"] == [3.6]
    assert chart_data(page(client, "gather-main", metric="unknown"))["metric"] == "total.seconds"


def test_holds_alerts_and_maintenance_are_events_of_the_chart(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(grid.circle, now - 90 * minute)
    scope = Scope(HoldKind.SERIES, "circle-ring")
    hold(scope, HoldMode.PAUSE, who="ada", why="disk swap", now=now - 30 * minute, until=None)
    window = MaintenanceWindow.objects.create(
        name="disks", starts_at=now - 60 * minute, ends_at=now - 50 * minute
    )
    elsewhere = MaintenanceWindow.objects.create(
        name="elsewhere", starts_at=now - 60 * minute, ends_at=now - 50 * minute
    )
    elsewhere.sites.add(grid.resources[3].site)
    rule = AlertRule.objects.create(name="in-a-row", condition="failures_in_row", threshold=3)
    Alert.objects.create(
        rule=rule,
        series=grid.circle,
        since=now - 20 * minute,
        opened_at=now,
        closed_at=now,
        text="3 failures",
    )
    events = chart_data(page(client, "circle-ring"))["annotations"]
    assert [(event["kind"], event["text"]) for event in events] == [
        ("alert", "in-a-row: 3 failures"),
        ("pause", "series circle-ring paused by ada: disk swap"),
        ("maintenance", window.name),
    ]


@pytest.mark.parametrize("query", [{}, {"range": "1y"}, {"metric": "stage.compare.seconds"}])
def test_the_file_of_a_chart_has_what_the_chart_shows(
    grid: Grid, client: Client, now: datetime, query: dict[str, str]
) -> None:
    builders.passed(grid.circle, now)
    answers = {form: client.get(f"/series/circle-ring/chart.{form}", query) for form in FILES}
    listed = json.loads(answers["json"].content)
    assert len(listed) == 1
    (row,) = csv.DictReader(io.StringIO(answers["csv"].content.decode()))
    assert row.keys() == listed[0].keys()
    assert parquet.read_table(io.BytesIO(answers["parquet"].content)).num_rows == 1
    name = query.get("metric", "total.seconds")
    value = listed[0]["median_seconds"] if "range" in query else listed[0][name]
    assert value == pytest.approx(0.3 if "metric" in query else 6.8, rel=0.01)
    assert client.get("/series/circle-ring/chart.xlsx", query).status_code == 404


def test_an_unknown_range_is_refused_with_the_default_shown(grid: Grid, client: Client) -> None:
    text = page(client, "gather-main", range="yesteryear")
    assert "expected one of 1h, 24h, 7d, 30d, 90d, 1y, all" in text
    assert "Showing 7d." in text


def test_no_more_runs_than_a_browser_can_draw_are_sent(
    grid: Grid, now: datetime, minute: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_choice, "MOST_RUNS_ASKED", 5)
    for number in range(8):
        builders.not_run(grid.circle, now - number * minute, State.MISSED, "")
    later, by_run = now + minute, ChartChoice(interval="run")
    shown = chart(grid.circle, relative("24h", later), None, by_run)
    assert isinstance(shown, RunChart)
    assert (len(shown.runs), shown.cut, shown.runs[-1].slot) == (5, True, now)
    whole = chart(grid.circle, PageRange("", now - 4 * minute, later), None, by_run)
    assert (len(whole.runs), whole.cut) == (5, False)


def test_the_csv_has_every_value_with_its_unit_and_outcome(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(grid.circle, now - minute)
    builders.not_run(grid.circle, now, State.MISSED, "no report")
    shown = rows(client, "circle-ring")
    totals = [row for row in shown if row["name"] == "total.seconds"]
    assert [row["outcome"] for row in totals] == ["passed", "missed"]
    assert [row["value"] for row in totals] == ["6.8", ""]
    assert totals[0]["time"] == f"{now - minute:%Y-%m-%dT%H:%M:%S}.000000Z"
    assert {row["unit"] for row in shown} == {"seconds", "bytes_per_second"}
    assert len(shown) == len(builders.CIRCLE) + 3 + 1 + 1  # stages, totals, a rate; the missed run


def test_the_csv_has_the_range_of_the_chart(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(grid.circle, now - 90 * minute)
    builders.passed(grid.circle, now)
    slots = {row["time"] for row in rows(client, "circle-ring", range="1h")}
    assert slots == {f"{now:%Y-%m-%dT%H:%M:%S}.000000Z"}


def test_the_csv_of_a_series_without_runs_has_only_its_header(grid: Grid, client: Client) -> None:
    assert rows(client, "circle-ring") == []


def test_run_now_queues_a_run_and_shows_it(grid: Grid, runner: Client) -> None:
    answer = runner.post("/series/circle-ring/run-now/", follow=True)
    run = Run.objects.get(series=grid.circle)
    assert answer.redirect_chain == [(f"/runs/{run.pk}/", 302)]
    assert run.trigger == "asked for by runner"
    text = answer.content.decode()
    assert "Run of circle-ring queued" in text
    assert "Waiting for the reporter" in text


def test_a_reader_has_no_button_and_is_refused(grid: Grid, client: Client) -> None:
    assert "Run now" not in page(client, "circle-ring")
    assert client.post("/series/circle-ring/run-now/").status_code == 403
    assert not Run.objects.exists()


def test_a_get_request_does_not_start_a_run(grid: Grid, runner: Client) -> None:
    assert runner.get("/series/circle-ring/run-now/").status_code == 405
    assert not Run.objects.exists()


def test_a_forged_request_does_not_start_a_run(grid: Grid) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(builders.user("runner", may_run=True))
    assert browser.post("/series/circle-ring/run-now/").status_code == 403
    assert not Run.objects.exists()


@pytest.mark.parametrize("form", formats.names())
def test_the_page_offers_downloads_in_every_format(grid: Grid, client: Client, form: str) -> None:
    link = f"/series/circle-ring/samples.{form}?range=24h"
    assert link in page(client, "circle-ring", range="24h")
    answer = client.get(link)
    assert answer["content-disposition"] == f'attachment; filename="circle-ring-24h.{form}"'
    assert isinstance(answer, StreamingHttpResponse)
    answer.getvalue()


def test_an_unknown_format_is_not_found(grid: Grid, client: Client) -> None:
    assert client.get("/series/circle-ring/samples.xlsx").status_code == 404
    assert client.get("/series/circle-ring/samples.base").status_code == 404


@pytest.mark.parametrize("path", ["", "samples.csv", "samples.parquet"])
def test_an_invisible_series_is_not_found(grid: Grid, client: Client, path: str) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    assert client.get(f"/series/secret-ring/{path}").status_code == 404
    assert client.get(f"/series/no-such-series/{path}").status_code == 404


def test_a_page_that_is_current_gets_no_content(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.circle, now)
    part = client.get("/series/circle-ring/", headers=HTMX).content.decode()
    assert part.startswith('<div id="live"')
    digest = re.search(r"seen=(\w+)", part)
    assert digest is not None
    assert client.get("/series/circle-ring/", {"seen": digest[1]}, headers=HTMX).status_code == 204
    builders.passed(grid.circle, now + timedelta(minutes=1))
    assert client.get("/series/circle-ring/", {"seen": digest[1]}, headers=HTMX).status_code == 200


def changed(grid: Grid, now: datetime, minute: timedelta, *, runs: int = 2) -> None:
    """Circle passed twice, was given a hundred times the data, and passed *runs* times more."""
    for number in range(2):
        builders.passed(grid.circle, now - (20 - number) * minute)
    grid.circle.parameters = {"file_bytes": 100_000_000}
    grid.circle.save()
    for number in range(runs):
        builders.passed(grid.circle, now - (10 - number) * minute)


def test_the_chart_has_a_boundary_with_the_change_where_a_segment_begins(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    changed(grid, now, minute)
    data = chart_data(page(client, "circle-ring"))
    (boundary,) = data["boundaries"]
    assert boundary["time"] == data["runs"][2]["slot"]
    assert (boundary["number"], boundary["words"]) == (2, "file_bytes 1 MB -> 100 MB")
    segment, other = data["segments"][0], data["segments"][-1]
    assert data["segments"] == [segment, segment, other, other]
    assert segment != other


def test_a_run_without_values_belongs_to_no_segment(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    changed(grid, now, minute)
    builders.not_run(grid.circle, now - 15 * minute, State.MISSED, "no report")
    data = chart_data(page(client, "circle-ring"))
    assert data["segments"][2] is None
    assert len(data["boundaries"]) == 1


def test_configuration_changes_are_listed_newest_first(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    assert "Configuration changes" not in page(client, "circle-ring")
    changed(grid, now, minute)
    text = page(client, "circle-ring")
    assert "Configuration changes" in text
    assert "file_bytes 1 MB → 100 MB" in text
    assert "<td>next run" not in text
    assert text.index("file_bytes 1 MB → 100 MB") < text.index("first: circle")


def test_a_pending_change_is_listed_for_the_next_run(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    changed(grid, now, minute, runs=0)
    text = page(client, "circle-ring")
    assert re.search(r"<td>next run</td>.*new segment</td>.*file_bytes 1 MB → 100 MB", text)
    assert "No run has passed since its parameters changed" in text
    assert chart_data(text)["pending"] is None


def test_returning_to_a_configuration_is_a_boundary_of_its_old_segment(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    changed(grid, now, minute)
    grid.circle.parameters = {"file_bytes": 1_000_000}
    grid.circle.save()
    assert re.search(r"<td>next run</td>.*segment 1 again</td>", page(client, "circle-ring"))
    builders.passed(grid.circle, now)
    text = page(client, "circle-ring")
    assert [boundary["number"] for boundary in chart_data(text)["boundaries"]] == [2, 1]
    assert "1 again" in text
    assert "file_bytes 100 MB → 1 MB" in text


def test_who_has_seen_the_newest_is_told_of_a_change_at_once(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    changed(grid, now, minute, runs=0)
    digest = re.search(r"seen=(\w+)", page(client, "circle-ring"))
    assert digest is not None
    Series.objects.filter(pk=grid.circle.pk).update(parameters={"file_bytes": 5})
    assert client.get("/series/circle-ring/", {"seen": digest[1]}, headers=HTMX).status_code == 200


def test_many_segments_need_no_more_queries_than_one(
    grid: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    changed(grid, now, minute)
    with CaptureQueriesContext(connection) as few:
        page(client, "circle-ring")
    for size in range(2, 12):
        grid.circle.parameters = {"file_bytes": size}
        builders.passed(grid.circle, now - minute + timedelta(seconds=size))
    with CaptureQueriesContext(connection) as many:
        assert len(chart_data(page(client, "circle-ring"))["boundaries"]) == 11
    assert len(many) <= len(few)
