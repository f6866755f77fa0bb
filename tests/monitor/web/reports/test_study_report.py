"""The study of two grids from runs in the depot: figures worked by hand, beside the published numbers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from forecasting.evaluation.published_predictions import ERRORS, MEAN_SECONDS, METRICS, STDEV_SECONDS
from monitor.analysis.outcomes.counts import SuccessRates
from monitor.analysis.performance.tables import label
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import DemoWeather, MaintenanceWindow, Site
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.testbed.weather import EDITION, profiles
from monitor.web.reports.blocks import Section
from monitor.web.reports.layout import study_sections
from monitor.web.reports.outcomes import CauseTotal, ErrorCounts, outcomes
from monitor.web.reports.passed_together import JudgedRuns, count_pairs
from monitor.web.reports.published_numbers import GRIDS
from monitor.web.reports.render import study_text
from monitor.web.reports.study_report import MOST_SERIES, NoRuns, StudyReport, StudyRequest, study_report
from reporters import report as wire
from tests.monitor.web.reports.studied_runs import (
    BINDINGS,
    GIVEN,
    HOUR,
    MINUTE,
    define_grid,
    failed_run_of,
    hourly_runs,
    run_of,
    store,
)

DAYS = timedelta(days=3)
TERAGRID = StudyRequest(grid="teragrid")
GEON = StudyRequest(grid="geon")
SECOND = timedelta(seconds=1)


@pytest.fixture
def grid(db: None, tmp_path: Path) -> None:
    define_grid(tmp_path)


def rows(report: StudyReport, title: str) -> list[list[str]]:
    """Return the rows of the only table whose title begins with *title*, below its headings."""
    (table,) = (
        block.table
        for section in study_sections(report)
        for block in section.blocks
        if block.table and block.title.startswith(title)
    )
    return [list(table.headings), *map(list, table.rows)]


def titles(report: StudyReport) -> list[str]:
    return [block.title for section in study_sections(report) for block in section.blocks]


def section(report: StudyReport, title: str) -> Section:
    (found,) = (each for each in study_sections(report) if each.title == title)
    return found


def test_the_figures_of_four_runs_are_those_worked_by_hand(grid: None, noon: datetime) -> None:
    hourly_runs(noon, [2.0, 4.0, 6.0, 8.0])
    report = study_report(TERAGRID, noon + DAYS)
    stages = rows(report, "Stages of gather as measured")
    assert stages[0] == ["Stage", "n", "Mean", "Min", "Max", "Std. dev.", "CV", "Share of variance"]
    # computation: mean 5, squared deviations 9 + 1 + 1 + 9, deviation sqrt(20 / 3) = 2.58
    assert ["Compute", "4", "5.00", "2.00", "8.00", "2.58", "0.516", "100.0 %"] in stages
    assert ["Init", "4", "1.00", "1.00", "1.00", "0.00", "0.00", "0.0 %"] in stages
    totals = rows(report, "Totals as measured")
    # (i): 7 other stages; (ii) without 3 of setup and cleanup: 3; (iii) without the queue: 2
    assert ["gather", "Total (i)", "4", "12.00", "9.00", "15.00", "2.58", "0.215"] in totals
    assert ["gather", "Total (ii)", "4", "8.00", "5.00", "11.00", "2.58", "0.323"] in totals
    assert ["gather", "Total (iii)", "4", "7.00", "4.00", "10.00", "2.58", "0.369"] in totals


def test_the_correlation_of_both_stands_beside_the_published_ones(grid: None, noon: datetime) -> None:
    hourly_runs(noon, [2.0, 4.0, 6.0, 8.0])
    published = {"teragrid": ("+0.32", "+0.54"), "geon": ("-", "-")}  # PreCo ran on TeraGrid only
    for name, (essential, core) in published.items():
        table = rows(study_report(StudyRequest(grid=name), noon + DAYS), "Correlation of preco with gather")
        heading = f"{GRIDS[name].title}, published"
        assert table[0] == ["Stage", "Simultaneous", "Right after", "30 minutes", heading]
        assert ["Compute", "- (0)", "+1.00 (4)", "+1.00 (3)", "-"] not in table
        assert ["Compute", "- (0)", "+1.00 (4)", "- (0)", "-"] in table
        assert ["Total (ii)", "- (0)", "+1.00 (4)", "- (0)", essential] in table
        assert ["Total (iii)", "- (0)", "+1.00 (4)", "- (0)", core] in table


def test_preco_stands_beside_what_was_published_of_it_on_teragrid_and_alone_elsewhere(
    grid: None, noon: datetime
) -> None:
    hourly_runs(noon, [2.0, 4.0, 6.0, 8.0])
    stages = rows(study_report(TERAGRID, noon + DAYS), "Stages of preco beside those of PreCo on TeraGrid")
    compute = next(row for row in stages if row[0] == "Compute")
    assert compute[2::2] == ["312.89", "-", "-", "19.93", "0.0637"], "no minimum and maximum was published"
    totals = rows(study_report(TERAGRID, noon + DAYS), "Totals of preco beside those of PreCo on TeraGrid")
    assert [row[2] for row in totals[1:]] == ["816.61", "715.45", "608.07"]
    geon = study_report(StudyRequest(grid="geon"), noon + DAYS)
    durations = [title for title in titles(geon) if title.startswith(("Stages of", "Totals of"))]
    assert not any("beside those of PreCo" in title for title in durations)
    assert "PreCo did not run on GEON" in " ".join(section(geon, "Runs").paragraphs)


def test_the_queue_wait_of_geon_is_said_to_be_the_start_of_a_forked_job(grid: None, noon: datetime) -> None:
    hourly_runs(noon, [2.0, 4.0])
    (note,) = section(study_report(GEON, noon + DAYS), "Stages").paragraphs
    assert "the published queue wait is the start-up of a forked job" in note
    assert section(study_report(TERAGRID, noon + DAYS), "Stages").paragraphs == []


def test_the_predictions_stand_beside_every_published_cell(grid: None, noon: datetime) -> None:
    hourly_runs(noon, [2.0 + number % 5 for number in range(40)])
    report = study_report(TERAGRID, noon + 3 * DAYS)
    table = rows(report, "Predictions of preco from gather, beside those of PreCo from Gather on TeraGrid")
    assert table[0] == ["", "", *map(label, METRICS)]
    published = [row[2:] for row in table if row[1] == "published"]
    assert published[0] == [f"{MEAN_SECONDS[metric]:.2f}" for metric in METRICS]
    assert published[1] == [f"{STDEV_SECONDS[metric]:.2f}" for metric in METRICS]
    assert published[2:] == [
        [f"{errors[name].percent} ({errors[name].variation_percent})" for name in METRICS]
        for errors in ERRORS.values()
    ]
    assert published[3] == [
        "8.42 (90.74)", "8.73 (90.71)", "8.08 (110.68)", "27.62 (84.5)", "4.86 (136.44)", "5.83 (291.95)",
        "33.8 (74.25)",
    ]  # fmt: skip
    mean = table[1]
    assert mean[:2] == ["Mean", "here"]
    assert table[3][2] == f"{100 * (float(mean[2]) / 816.61 - 1):+.1f} %"


def test_the_reasons_for_differences_follow_from_the_published_errors(grid: None, noon: datetime) -> None:
    hourly_runs(noon, [2.0, 4.0])
    notes = " ".join(section(study_report(TERAGRID, noon + DAYS), "Why the figures differ").paragraphs)
    assert "Published: PreCo on TeraGrid; the number of its runs was not published" in notes
    for told in (
        "stage data by the fixed line, 24.65 against 27.62 %, with TSP 28.43 against 30.92 %",
        "shows in stage data: 67.89 against 27.62 %, with TSP 65.88 against 30.92 %",
        "not show in the queue, 28.31 against 33.8 %, with TSP 29.22 against 34.05 %",
        "in build only without TSP, 6.29 against 4.86 %, with TSP 4.27 against 4.79 %",
        "computation vary by 291.95 % with LRP full and 408.4 % with the last 10, but by 80.45 % with TSP",
        "a published mean of 18.40 s and a maximum of 61.21 s",
    ):
        assert told in notes
    assert notes.count("not published") == 5


def test_what_was_published_stands_beside_dashes_where_no_run_was_scored(grid: None, noon: datetime) -> None:
    store(run_of("preco", noon + number * HOUR, without=["stage_data"]) for number in range(3))
    report = study_report(TERAGRID, noon + DAYS)
    table = rows(report, "Predictions of preco from gather")
    assert table[0] == ["", "", *map(label, METRICS)]
    published = [row[2:] for row in table if row[1] == "published"]
    assert published[2:] == [[errors[name].text() for name in METRICS] for errors in ERRORS.values()]
    here = [row[2:] for row in table if row[1] == "here"]
    assert here[2:-1] == [["-"] * len(METRICS)] * len(ERRORS)
    assert here[-1] == ["0"] * len(METRICS)
    (note,) = section(report, "Forecasts of preco").paragraphs
    assert "3 runs of preco have passed" in note


def test_in_a_faster_demo_durations_and_lags_are_in_the_time_of_the_grid(grid: None, noon: datetime) -> None:
    DemoWeather.objects.record("teragrid", 10, 20.0, noon - HOUR, edition=EDITION)
    hourly_runs(noon, [2.0, 4.0, 6.0, 8.0])
    report = study_report(StudyRequest(), noon + DAYS)
    assert (report.grid, report.scale) == ("teragrid", 20.0)
    beside = rows(report, "Stages of gather beside those of Gather on TeraGrid, seconds of the grid")
    # mean 5, minimum 2, maximum 8, deviation 2.58, times 20
    expected = ["100.00", "18.40", "40.00", "17.99", "160.00", "61.21", "51.64", "2.04", "0.516", "0.111"]
    assert ["Compute", *expected] in beside
    # ten minutes are more than three hours of the grid: no pair is half an hour apart
    assert ["Compute", "- (0)", "- (0)", "- (0)", "-"] in rows(report, "Correlation of preco with gather")
    assert section(report, "Correlation of preco with probes").paragraphs == [
        "Lags are in the time of the grid: 30 minutes took 90.0 s here."
    ]


def test_a_lag_of_half_an_hour_of_the_grid_has_pairs_in_a_faster_demo(grid: None, noon: datetime) -> None:
    DemoWeather.objects.record("teragrid", 10, 20.0, noon - HOUR, edition=EDITION)
    for number, seconds in enumerate([2.0, 4.0, 6.0, 8.0]):
        slot = noon + number * HOUR
        ended = slot + timedelta(seconds=7 + seconds)
        store([run_of("gather", slot, compute=seconds)])
        store([run_of("preco", ended + 100 * SECOND, compute=2 * seconds)])
    report = study_report(StudyRequest(), noon + DAYS)
    assert ["Compute", "- (0)", "- (0)", "+1.00 (4)", "-"] in rows(report, "Correlation of preco with gather")


def test_a_stage_that_is_missing_here_or_there_has_dashes(grid: None, noon: datetime) -> None:
    store(
        run_of("gather", noon + number * HOUR, without=["cleanup"], compute=1.0 + number)
        for number in range(3)
    )
    table = rows(study_report(TERAGRID, noon + DAYS), "Stages of gather beside")
    published = ["-", "10.76", "-", "3.14", "-", "413.46", "-", "20.37", "-", "1.89"]
    assert ["Cleanup", *published] in table
    geon = rows(study_report(StudyRequest(grid="geon"), noon + DAYS), "Totals of gather beside")
    assert next(row for row in geon if row[0] == "Total (iii)")[1:3] == ["4.00", "-"]
    assert next(row for row in geon if row[0] == "Total (ii)")[2::2] == [
        "93.95",
        "84.66",
        "286.01",
        "15.63",
        "0.166",
    ]


def test_one_run_is_described_with_dashes_and_without_charts_of_a_spread(grid: None, noon: datetime) -> None:
    store([run_of("gather", noon, compute=5.0)])
    report = study_report(TERAGRID, noon + DAYS)
    assert ["Compute", "1", "5.00", "5.00", "5.00", "-", "-", "-"] in rows(report, "Stages of gather as")
    assert ["gather", "Total (i)", "1", "12.00", "-", "-", "-"] in rows(report, "Skewness")
    assert not any(title.startswith(("Runs of gather", "Total (i)")) for title in titles(report))
    assert "0 runs of preco have passed" in " ".join(section(report, "Forecasts of preco").paragraphs)


def test_only_the_segment_that_ran_last_is_described(grid: None, noon: datetime) -> None:
    store(run_of("gather", noon + number * HOUR, compute=9.0) for number in range(5))
    newer = wire.ProbeIdentity("gather", "99", "0" * 64)
    later = [run_of("gather", noon + (10 + number) * HOUR, compute=2.0) for number in range(3)]
    store(replace(run, probe=newer) for run in later)
    report = study_report(TERAGRID, noon + DAYS)
    assert ["gather", "gather", "2", "3", "5", "0"] in rows(report, "Series and runs")
    assert ["Compute", "3", "2.00", "2.00", "2.00", "0.00", "0.00", "-"] in rows(
        report, "Stages of gather as"
    )


def test_errors_are_counted_by_probe_category_and_signature(grid: None, noon: datetime) -> None:
    store(run_of("gather", noon + number * HOUR) for number in range(6))
    full, refused = "scp: No space left on device", "ssh: connect to host b port 22: Connection refused"
    texts = [full, full, full, refused]
    store(failed_run_of("gather", noon + (6 + n) * HOUR, text) for n, text in enumerate(texts))
    store([failed_run_of("circle", noon, full)])
    classify_runs(noon + DAYS)
    report = study_report(TERAGRID, noon + DAYS)
    assert ["gather", "10", "4", "0", "60.0 %", "60.0 %", "58 %"] in rows(report, "Success rates")
    assert ["circle", "1", "1", "0", "0.0 %", "0.0 %", "78 %"] in rows(report, "Success rates")
    categories = rows(report, "Failed runs by category")
    assert categories[0] == ["Category", "circle", "gather", "published"]
    assert categories[1:] == [["storage", "1", "3", "-"], ["resource", "0", "1", "-"]]
    causes = rows(report, "Causes of the failed runs of gather")
    assert [row[2:] for row in causes[1:]] == [
        ["storage", "3", "75.0 %", "-"],
        ["resource", "1", "25.0 %", "-"],
    ]
    assert "Errors of gather: failed runs by cause, 4 in all" in titles(report)


def test_failures_that_are_not_classified_yet_are_counted_as_such(grid: None, noon: datetime) -> None:
    store([failed_run_of("circle", noon, "Connection refused")])
    found = study_report(TERAGRID, noon + DAYS).outcomes.errors["circle"]
    assert [(cause.name, cause.category, cause.runs) for cause in found.causes] == [("", "unknown", 1)]


def test_failures_in_maintenance_are_excused(grid: None, noon: datetime) -> None:
    store([failed_run_of("circle", noon, "Connection refused"), run_of("circle", noon + HOUR)])
    window = MaintenanceWindow.objects.create(name="power", starts_at=noon - MINUTE, ends_at=noon + MINUTE)
    window.sites.add(Site.objects.get(name="site-of-alpha"))
    (rates,) = study_report(TERAGRID, noon + DAYS).outcomes.rates.values()
    assert (rates.raw, rates.adjusted) == (0.5, 1.0)


def pairs_of(report: StudyReport) -> list[str]:
    (row,) = (row for row in rows(report, "Success rates") if row[0].startswith("gather and circle"))
    return row[1:]


def test_pairs_of_gather_and_circle_that_passed_stand_beside_those_of_geon(
    grid: None, noon: datetime
) -> None:
    """Circle of hour 3 failed; Gather of hour 9 has no Circle within an hour; the others passed."""
    half = 30 * MINUTE
    store(run_of("gather", noon + hour * HOUR) for hour in (0, 1, 2, 3, 9))
    store(run_of("circle", noon + hour * HOUR + half) for hour in (0, 1, 2))
    store([failed_run_of("circle", noon + 3 * HOUR + half, "No space left on device")])
    assert pairs_of(study_report(GEON, noon + DAYS)) == ["4", "1", "0", "75.0 %", "75.0 %", "56 %"]


def test_a_pair_with_an_excused_run_is_left_out_of_the_adjusted_share(grid: None, noon: datetime) -> None:
    store(run_of("gather", noon + hour * HOUR) for hour in range(4))
    store(run_of("circle", noon + hour * HOUR + MINUTE) for hour in (0, 1))
    store([failed_run_of("circle", noon + 2 * HOUR + MINUTE, "No space left on device")])
    store([failed_run_of("circle", noon + 3 * HOUR + MINUTE, "Connection refused")])
    start, end = noon + 3 * HOUR, noon + 4 * HOUR
    MaintenanceWindow.objects.create(name="power", starts_at=start, ends_at=end)
    expected = ["4", "2", "1", "50.0 %", "66.7 %", "56 %"]
    assert pairs_of(study_report(GEON, noon + DAYS)) == expected


def test_runs_of_each_weather_are_paired_in_its_own_time(grid: None, noon: datetime) -> None:
    """An hour of the grid takes 6 minutes at first, then 3."""
    DemoWeather.objects.record("geon", 10, 10.0, noon - HOUR, edition=EDITION)
    DemoWeather.objects.record("geon", 10, 20.0, noon + HOUR, edition=EDITION)
    store(run_of("gather", noon + hour * HOUR) for hour in range(3))
    store(run_of("circle", noon + hour * HOUR + 5 * MINUTE) for hour in range(3))
    assert pairs_of(study_report(GEON, noon + DAYS))[:2] == ["1", "0"]
    store([failed_run_of("circle", noon + 2 * HOUR + 2 * MINUTE, "No space left on device")])
    assert pairs_of(study_report(GEON, noon + DAYS))[:2] == ["2", "1"]


def test_without_a_pair_the_published_share_stands_beside_dashes(grid: None, noon: datetime) -> None:
    store([run_of("gather", noon), run_of("circle", noon + 2 * HOUR)])
    assert pairs_of(study_report(GEON, noon + DAYS)) == ["0", "0", "0", "-", "-", "56 %"]
    only_gather = study_report(replace(TERAGRID, since=noon - HOUR), noon + HOUR)
    assert ["circle", "0", "0", "0", "-", "-", "78 %"] in rows(only_gather, "Success rates")


def test_each_run_is_in_one_pair_with_the_nearest_one_or_the_later_of_two() -> None:
    """100 and 150, 300 and 280; 200 is nearest to 150 as well, and 50 to 100."""
    own = JudgedRuns(np.array([100, 200, 300]), np.ones(3, bool), np.zeros(3, bool))
    others = JudgedRuns(
        np.array([50, 150, 280, 390]), np.array([True, False, True, False]), np.zeros(4, bool)
    )
    assert count_pairs(own, others, 51.0).tolist() == [1, 1, 0]
    assert count_pairs(own, others, 50.0).tolist() == [1, 0, 0]


def test_the_report_names_the_column_that_compares_with_the_published_success(
    grid: None, noon: datetime
) -> None:
    store([run_of("gather", noon)])
    for request, period in ((TERAGRID, "the first six weeks"), (GEON, "a time that was not published")):
        (note,) = section(study_report(request, noon + DAYS), "Errors").paragraphs
        assert f"The published rates are of {period}." in note
        assert '"Success, adjusted" is the column to compare' in note
    assert section(study_report(StudyRequest(), noon + DAYS), "Errors").paragraphs == []


def test_runs_of_several_weathers_are_named_and_not_scaled(grid: None, noon: datetime) -> None:
    DemoWeather.objects.record("calm", 10, 10.0, noon - HOUR, edition=EDITION)
    DemoWeather.objects.record("teragrid", 10, 20.0, noon + HOUR + MINUTE, edition=EDITION)
    hourly_runs(noon, [2.0, 4.0, 6.0, 8.0])
    report = study_report(StudyRequest(), noon + DAYS)
    assert (report.grid, report.scale) == ("teragrid", 1.0)
    notes = " ".join(section(report, "Runs").paragraphs)
    assert f"calm (seed 10, edition {EDITION}, 10 times as fast" in notes
    assert "Runs that met another weather than teragrid are compared with TeraGrid as well" in notes
    other = section(study_report(StudyRequest(grid="geon"), noon + DAYS), "Runs").paragraphs
    assert "No run met the weather of GEON" in " ".join(other)
    newer = study_report(replace(TERAGRID, since=noon + 2 * HOUR), noon + DAYS)
    assert newer.scale == 20.0
    assert newer.outcomes.rates["gather"].passed == 2


def test_without_a_known_grid_no_published_numbers_stand_beside(grid: None, noon: datetime) -> None:
    hourly_runs(noon, [2.0, 4.0])
    report = study_report(StudyRequest(), noon + DAYS)
    assert report.grid is None
    assert not any("beside those of Gather" in title for title in titles(report))
    assert ["gather", "2", "0", "0", "100.0 %", "100.0 %", "-"] in rows(report, "Success rates")
    assert "--grid" in " ".join(section(report, "Runs").paragraphs)


def test_of_many_series_those_with_the_most_runs_are_described_and_the_others_named(
    grid: None, noon: datetime
) -> None:
    names = [f"ring-{number:02}" for number in range(MOST_SERIES + 2)]
    define([], [SeriesDefinition(name, "circle", BINDINGS["circle"], GIVEN["circle"]) for name in names])
    for number, name in enumerate(names):
        store(run_of("circle", noon + hour * HOUR, series=name) for hour in range(2 if number else 1))
    report = study_report(TERAGRID, noon + DAYS)
    assert report.left_out == ["ring-00", names[-1]]
    assert len(report.of_probe("circle")) == MOST_SERIES
    assert report.outcomes.errors["circle"].rates.passed == 2 * len(names) - 1
    assert "Left out: 2 series with fewer runs: ring-00, ring-11" in study_text(report)


def test_tables_and_figures_are_numbered_in_order(grid: None, noon: datetime) -> None:
    hourly_runs(noon, [2.0, 4.0, 6.0, 8.0])
    blocks = [each for part in study_sections(study_report(TERAGRID, noon + DAYS)) for each in part.blocks]
    for kind in ("Table", "Figure"):
        numbers = [block.number for block in blocks if block.kind == kind]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= 8


def test_without_runs_the_error_names_the_probes(grid: None, noon: datetime) -> None:
    with pytest.raises(NoRuns, match="no run of gather, circle, preco has passed or failed"):
        study_report(TERAGRID, noon)
    assert outcomes([], None, noon) is None
    store([run_of("gather", noon)])
    with pytest.raises(NoRuns, match="since 2026-03-01 13:00 UTC"):
        study_report(replace(TERAGRID, since=noon + HOUR), noon + DAYS)


def test_the_weather_of_the_demo_is_recorded_when_it_changes(db: None, noon: datetime) -> None:
    record, between = DemoWeather.objects.record, DemoWeather.objects.between
    first = record("teragrid", 10, 20.0, noon, edition=1)
    assert record("teragrid", 10, 20.0, noon + HOUR, edition=1) == first
    second = record("teragrid", 10**30, 20.0, noon + 2 * HOUR, edition=1)
    third = record("teragrid", 10**30, 20.0, noon + 4 * HOUR, edition=2)
    assert between(noon + HOUR, noon + HOUR) == [first]
    assert between(noon - HOUR, noon + 3 * HOUR) == [first, second]
    assert between(noon + 3 * HOUR, noon + 9 * HOUR) == [second, third]
    assert between(noon - 2 * HOUR, noon - HOUR) == []


def test_runs_of_the_weather_before_the_published_times_of_preco_are_marked(
    grid: None, noon: datetime
) -> None:
    DemoWeather.objects.record("teragrid", 10, 20.0, noon - HOUR, edition=1)
    hourly_runs(noon, [2.0, 4.0])
    notes = " ".join(section(study_report(StudyRequest(), noon + DAYS), "Runs").paragraphs)
    assert "teragrid (seed 10, edition 1, 20 times as fast" in notes
    assert "In edition 1 of the weather, PreCo's times were not drawn from the published ones" in notes
    DemoWeather.objects.record("teragrid", 10, 20.0, noon - MINUTE, edition=2)
    assert "edition 1" not in " ".join(section(study_report(StudyRequest(), noon + DAYS), "Runs").paragraphs)


def test_the_weather_draws_from_the_published_numbers() -> None:
    for name, published in GRIDS.items():
        profile = profiles.load(name)
        assert {stage: figures.mean for stage, figures in profile.gather.items()} == {
            stage: duration.mean for stage, duration in published.stages().items()
        }
        # PreCo ran on TeraGrid only, and has its times in each weather.
        assert {
            stage: (profile.preco[stage].mean, profile.preco[stage].stdev)
            for stage in GRIDS["teragrid"].preco_stages()
        } == {
            stage: (duration.mean, duration.stdev)
            for stage, duration in GRIDS["teragrid"].preco_stages().items()
        }


def test_categories_add_up_to_the_failures() -> None:
    causes = [
        CauseTotal("a", "A", "network", 2),
        CauseTotal("b", "B", "storage", 4),
        CauseTotal("c", "C", "network", 3),
    ]
    counts = ErrorCounts("gather", SuccessRates(1, 9, 0), causes).by_category()
    assert counts == {"network": 5, "storage": 4}
    assert list(counts) == ["network", "storage"]
