"""The page of forecast accuracy: readable without JavaScript, permalinks, tables as CSV."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.defaults import METHOD
from monitor.depot.series.current_segment import store_current_segments
from monitor.models import (
    ApiToken,
    DayScore,
    Forecast,
    ForecastPredictor,
    ForecastState,
    Metric,
    Outcome,
    Series,
    Suite,
)
from monitor.models.token import READ, REPORT
from monitor.runs.ingest.service import ingest
from monitor.web.charts.score_svg import Comparison, Guide, coverage_bar, lines, ratios
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.web.pages import builders

PATH = "/forecasts/accuracy/"
STYLES = Path(settings.BASE_DIR, "monitor/static/monitor/scoreboard.css").read_text(encoding="utf-8")


@pytest.fixture
def browser(db: None) -> Client:
    client = Client()
    client.force_login(builders.user("reader"))
    return client


def text(client: Client, query: str = "") -> str:
    """Return the text of the page, without markup."""
    answer = client.get(PATH + query)
    assert answer.status_code == 200
    words = answer.content.decode().replace("<wbr>", "")
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", words)).split())


@pytest.fixture
def scored(circle: Series) -> Metric:
    """A day of scores, one of them outside its interval, a predictor and a job."""
    now = timezone.now()
    ingest(wire.to_json(circle_report(now - timedelta(minutes=5))))
    total = Metric.objects.get(name="total.seconds")
    sums = {"absolute_error": 15.0, "last_value_error": 20.0, "compared_error": 15.0, "actual": 120.0}
    counts = {"n": 10, "last_value_n": 10, "interval_n": 10, "within_80": 8, "within_90": 9}
    fields = {"metric": "total.seconds", "unit": "seconds", "method": METHOD, "suite": circle.suite}
    for site in (None, circle.bindings.all()[0].resource.site):
        for ago in (0, 1):
            day = (now - timedelta(days=ago)).date()
            DayScore.objects.create(day=day, site=site, **fields, **counts, **sums)
    ForecastState.objects.update_or_create(metric=total, defaults={"record_n": 1, "last_time": now})
    message = {"mean": 7.0, "median": 7.0, "lower": 6.0, "upper": 8.0, "truth": 9.0, "truth_time": now}
    times = {"issued_at": now, "last_time": now, "last_known_at": now}
    forecast = Forecast.objects.create(metric=total, method=METHOD, level=0.8, n=9, **message, **times)
    predictor = {"metric": total, "series": circle, "name": "stage.compare.seconds", "n": 40, "gain": -0.1}
    ForecastPredictor.objects.create(p_value=0.4, is_kept=False, **predictor)
    Outcome.objects.create(
        forecast=forecast,
        metric=total,
        consumer=User.objects.get(username="reader"),
        job="job-1",
        passed=True,
        seconds=7.7,
        started_at=now,
        ended_at=now,
        received_at=now,
    )
    return total


def test_without_scores_the_page_says_how_they_come_about(browser: Client) -> None:
    shown = text(browser)
    assert "No scored forecasts" in shown
    assert "No job outcomes yet of your own" in shown
    assert "No predictors evaluated" in shown


def test_the_page_shows_errors_and_coverage(browser: Client, scored: Metric) -> None:
    shown = text(browser)
    assert "Scored forecasts 20" in shown
    assert "Mean absolute error 1.5 s 12 % of the actual value" in shown
    assert "Error vs. last value (MASE) 0.75" in shown
    assert "80 % coverage 80 % of 20" in shown
    assert "90 % coverage 90 % of 20" in shown
    assert "circle 7.0 s 6.0 to 8.0 s 9.0 s outside 2.0 s" in shown
    assert "circle circle stage.compare.seconds -10 % 0.400 40 dropped" in shown
    assert "reader 1 1 0.70 s (9 %) 100 %" in shown


def test_the_page_shows_calibration_horizons_and_series(browser: Client, scored: Metric) -> None:
    half, levels = len(QUANTILE_LEVELS) // 2, len(QUANTILE_LEVELS)
    counts = [0] * half + [20] * (levels - half)  # all actual values equal the median
    record = {"record_n": 20, "mean_absolute_error": 2.0, "mean_absolute_scaled_error": 1.25}
    ForecastState.objects.filter(metric=scored).update(less=counts, most=counts, **record)
    store_current_segments([Series.objects.get().pk])
    issued = timezone.now() - timedelta(hours=2)
    Forecast.objects.filter(metric=scored).update(issued_at=issued)
    shown = text(browser)
    assert "50.0 % 100.0 % 20" in shown
    assert "40.0 % 0.0 % 20" in shown
    assert "1 to 6 h 1 2.0 s 22 % 0 %" in shown
    assert "circle 20 2.0 s 1.25 100 %" in shown
    assert "1 to 6 h" not in text(browser, "?site=site-of-nowhere")
    assert "Calibration" not in text(browser, "?method=nws")


def test_the_time_range_chooses_the_days(browser: Client, scored: Metric) -> None:
    today = timezone.now().date()
    assert "Scored forecasts 20" in text(browser, "?range=all")
    assert "Scored forecasts 10" in text(browser, f"?from={today - timedelta(days=9)}&to={today}")
    assert "No scored forecasts" in text(browser, "?from=2020-01-01&to=2020-02-01")


def test_the_filters_are_in_the_address(browser: Client, scored: Metric) -> None:
    page = browser.get(PATH, {"site": "site-of-here", "range": "90d"}).content.decode()
    assert 'value="site-of-here"' in page
    assert '<input type="hidden" name="range" value="90d">' in page
    query = f"site=site-of-here&amp;metric=total.seconds&amp;method={METHOD}&amp;range=90d"
    assert f"forecasts/accuracy/times.csv?{query}" in page
    assert "No scored forecasts" in text(browser, "?site=site-of-there")
    assert "change the filters" in text(browser, "?metric=total_core.seconds")


@pytest.mark.parametrize("query", ["?range=1000y", "?site=%00", "?metric=<script>", "?method=%F0%28"])
def test_an_invalid_address_is_no_error(browser: Client, scored: Metric, query: str) -> None:
    answer = browser.get(PATH + query)
    assert answer.status_code == 200
    assert b"<script>" not in answer.content.partition(b"<main")[2]


def test_the_page_needs_no_javascript(browser: Client, scored: Metric) -> None:
    main = browser.get(PATH).content.decode().partition("<main")[2]
    assert main.count('<svg class="drawing"') == 3
    assert "<script" not in main
    assert 'href="/series/circle/"' in main


def rows(browser: Client, part: str) -> list[dict[str, str]]:
    answer = browser.get(f"{PATH}{part}.csv")
    assert answer["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_every_table_can_be_downloaded(browser: Client, scored: Metric) -> None:
    assert [row["n"] for row in rows(browser, "times")] == ["10", "10"]
    assert [row["name"] for row in rows(browser, "sites")] == ["site-of-here"]
    assert [row["mean_absolute_error"] for row in rows(browser, "methods")] == ["1.5"]
    assert [row["name"] for row in rows(browser, "metrics")] == ["total.seconds"]
    (last,) = rows(browser, "last")
    assert (last["series"], last["truth"], last["median"]) == ("circle", "9.0", "7.0")
    assert browser.get(f"{PATH}nothing.csv").status_code == 404


def test_only_members_see_scores_and_only_of_their_suites(browser: Client, scored: Metric) -> None:
    assert Client().get(PATH).status_code == 302
    assert Client().get(f"{PATH}times.csv").status_code == 302
    closed = Suite.objects.get()
    closed.viewers.create(name="staff")
    assert "No scored forecasts" in text(browser)
    assert rows(browser, "last") == []


def test_no_metric_name_breaks_the_name_of_the_file(browser: Client) -> None:
    answer = browser.get(f"{PATH}last.csv", {"metric": 'a\r\nb";c' + "d" * 1900})
    assert answer.status_code == 200
    assert answer["content-disposition"].startswith('attachment; filename="forecasts-last-abcdd')
    assert len(answer["content-disposition"]) < 200


def test_the_api_gives_the_same_scores(browser: Client, scored: Metric) -> None:
    board = browser.get("/api/v1/scoreboard", {"range": "7d"}).json()
    assert (board["whole"]["n"], board["whole"]["mean_absolute_error"]) == (20, 1.5)
    assert [site["name"] for site in board["sites"]] == ["site-of-here"]
    assert len(board["times"]) == 2
    assert [comparison["actual"] for comparison in board["last"]] == [9.0]
    assert board["predictors"][0]["is_kept"] is False
    assert [consumer["name"] for consumer in board["consumers"]] == ["reader"]
    assert browser.get("/api/v1/scoreboard", {"range": "2d"}).status_code == 422
    assert browser.get("/api/v1/scoreboard", {"site": "\x00"}).status_code == 422


def test_programs_download_the_same_tables_with_a_token(browser: Client, scored: Metric) -> None:
    token = ApiToken.objects.issue(builders.user("program"), "program", [READ])
    program = Client(headers={"authorization": f"Bearer {token}"})
    for part in ("methods", "metrics", "sites", "times", "last"):
        answer = program.get(f"/api/v1/scoreboard/{part}.csv?range=7d")
        assert (answer.status_code, answer["content-type"]) == (200, "text/csv; charset=utf-8")
        assert answer["content-disposition"].startswith(f'attachment; filename="forecasts-{part}-')
        assert answer.content == browser.get(f"{PATH}{part}.csv?range=7d").content
    assert program.get("/api/v1/scoreboard/nothing.csv").status_code == 422
    assert Client().get("/api/v1/scoreboard/times.csv").status_code == 401
    of_reports = ApiToken.objects.issue(builders.user("reporter"), "reporter", [REPORT])
    refused = Client(headers={"authorization": f"Bearer {of_reports}"}).get("/api/v1/scoreboard/times.csv")
    assert refused.status_code == 403


def test_a_line_is_interrupted_where_there_is_no_value() -> None:
    drawn = lines([("l-1", [1.0, 2.0, None, 2.0])], [Guide(1.0, "one")], low=0.0, high=2.0, label="a line")
    assert (drawn.count('<line class="l-1"'), drawn.count('<circle class="l-1"')) == (1, 3)
    assert '<text y="50.00%"' in drawn


def test_an_actual_value_outside_its_interval_looks_different() -> None:
    missed = [
        Comparison(1.0, 0.9, 1.1, "/a", "in"),
        Comparison(2.0, 0.9, 1.1, "/b", "out"),
        Comparison(0, 0, 1, "/c", ""),
    ]
    drawn = ratios(missed, label="truths")
    assert re.findall(r'circle class="(\w+)"', drawn) == ["inside", "outside", "inside"]
    assert all(0 <= float(y) <= 100 for y in re.findall(r'cy="([\d.]+)%"', drawn))
    for kind in ("inside", "outside", "within", "guide"):
        assert f".drawing .{kind} " in STYLES


def test_a_coverage_bar_has_a_line_at_the_nominal_level() -> None:
    assert coverage_bar(None, 0.8) == ""
    assert 'x1="80%"' in coverage_bar(0.75, 0.8)
    assert 'width="75.0%"' in coverage_bar(0.75, 0.8)
