"""``manage.py report study``: the study of two grids from runs of this depot, as text, JSON, HTML and PDF."""

from __future__ import annotations

import io
import json
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from monitor.management.commands.report import ENOUGH_RUNS
from monitor.models import DemoWeather
from monitor.testbed.weather import EDITION
from tests.monitor.web.reports.rendering import available_renderer
from tests.monitor.web.reports.studied_runs import define_grid, run_of, store

RUNS = 40
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "study.md"


@pytest.fixture
def grid(db: None, tmp_path: Path) -> None:
    define_grid(tmp_path)


@pytest.fixture
def two_days(grid: None, noon: datetime) -> None:
    """Store hourly runs of Gather and, ten minutes later, of PreCo, which always takes twice as long."""
    weather = random.Random(5)
    reports = []
    for number in range(RUNS):
        slot, slowness = noon + timedelta(hours=number), weather.uniform(1.0, 5.0)
        reports.append(run_of("gather", slot, usual=slowness))
        reports.append(run_of("preco", slot + timedelta(minutes=10), usual=2.0 * slowness))
    store(reports)


def study_output(*options: str | Path) -> str:
    out = io.StringIO()
    call_command("report", "study", *map(str, options), stdout=out)
    return out.getvalue()


def refusal(*options: str | Path) -> str:
    with pytest.raises(CommandError) as refused:
        study_output(*options)
    return str(refused.value)


def test_a_perfectly_correlated_probe_predicts_better_than_history(two_days: None) -> None:
    document = json.loads(study_output("--json"))
    total = document["predictions"]["metrics"]["total.seconds"]["cells"]
    assert total["lrp"]["n"] == total["nws"]["n"] > 20
    assert total["lrp"]["relative_error"] < 0.01
    assert total["nws"]["relative_error"] > 0.2
    published = document["predictions"]["published"]["total.seconds"]["cells"]
    assert published["nws"]["relative_error"] == pytest.approx(0.0857)
    assert document["facts"]["runs"] == RUNS
    assert document["facts"]["probe_age_seconds"] == 600.0


def test_json_has_every_figure(two_days: None, noon: datetime) -> None:
    DemoWeather.objects.record("teragrid", 7, 20.0, noon, edition=EDITION)
    document = json.loads(study_output("--json"))
    assert (document["grid"], document["seconds_of_the_grid_per_second"]) == ("teragrid", 20.0)
    (weather,) = document["weathers"]
    assert (weather["seed"], weather["edition"]) == ("7", EDITION)
    assert document["published"]["correlations"] == {
        "total_essential.seconds": 0.32,
        "total_core.seconds": 0.54,
    }
    gather = document["statistics"]["gather"]
    assert gather["stages"]["stage.compute.seconds"]["n"] == RUNS
    assert gather["histograms"]["total.seconds"]["classes"]
    assert document["statistics"]["preco"]["correlations"][0]["probe"] == "gather"
    assert document["outcomes"]["gather"]["raw"] == 1.0
    assert document["errors"]["gather"] == []
    assert {pair["metric"] for pair in document["normalised"]} == {
        "total.seconds",
        "total_essential.seconds",
        "total_core.seconds",
    }


def test_the_text_has_the_tables_published_errors_and_differences(two_days: None) -> None:
    text = study_output("--grid=teragrid")
    rows = text.splitlines()
    first = next(place for place, row in enumerate(rows) if row.startswith("TSP "))
    assert rows[first + 1].split()[:3] == ["published", "8.57", "(90.32)"]
    assert rows[first + 2].split()[0] == "difference"
    assert next(row for row in rows if row.startswith("Compute ")).split()[1] == str(RUNS)
    assert f"{RUNS} runs of 1 series" in text
    assert "10 min before preco (median)" in text
    assert "Correlation of preco with gather" in text


def test_html_and_pdf_are_written_and_named(grid: None, noon: datetime, tmp_path: Path) -> None:
    available_renderer()
    store([run_of("gather", noon)])
    html, pdf = tmp_path / "study.html", tmp_path / "study.pdf"
    html.write_text("old")
    assert study_output("--grid=geon", "--html", html, "--pdf", pdf) == f"{html}: written\n{pdf}: written\n"
    assert "beside GEON" in html.read_text(encoding="utf-8")
    assert pdf.read_bytes().startswith(b"%PDF-")
    assert json.loads(study_output("--grid=geon", "--html", html, "--json"))["grid"] == "geon"


@pytest.mark.parametrize("options", [["--days=0"], ["--days=nan"], ["--warm-up=-1"], ["--grid=egee"]])
def test_an_invalid_option_is_reported_by_name(options: list[str]) -> None:
    assert options[0].partition("=")[0] in refusal(*options)


def test_a_file_that_cannot_be_written_is_reported_before_anything_is_computed(
    db: None, tmp_path: Path
) -> None:
    missing = tmp_path / "missing" / "study.html"
    assert refusal("--html", missing) == f"cannot write {missing}: No such file or directory"
    assert refusal("--html", tmp_path) == f"cannot write {tmp_path}: it is not a regular file"


def test_html_and_pdf_are_two_files(db: None, tmp_path: Path) -> None:
    both = tmp_path / "study"
    assert "expected two files" in refusal("--html", both, "--pdf", tmp_path / "." / "study")


def test_without_runs_the_command_reports_what_it_needs_and_keeps_the_file(
    grid: None, tmp_path: Path
) -> None:
    html = tmp_path / "study.html"
    html.write_text("old")
    text = refusal("--html", html)
    assert "no run of gather, circle, preco has passed or failed" in text
    assert ENOUGH_RUNS in text
    assert html.read_text() == "old"


def test_the_command_and_its_guide_advise_the_same_demo() -> None:
    assert ENOUGH_RUNS in GUIDE.read_text(encoding="utf-8")


def test_with_too_few_runs_for_forecasts_the_other_tables_are_printed(grid: None, noon: datetime) -> None:
    store([run_of("gather", noon)])
    text = study_output()
    assert "0 runs of preco have passed" in text
    assert "Stages of gather as measured" in text
