"""``manage.py stats`` prints the tables of the study of two grids from the runs in the depot."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from monitor.analysis.performance.tables import StatisticsTable, as_latex, as_text, label, latex_escaped
from monitor.management.commands.stats import _window
from monitor.models import Series
from reporters import report as wire
from tests.monitor.analysis.performance.runs import HOUR, MINUTE, another_series, ring_runs
from tests.monitor.builders import circle_report
from tests.monitor.conftest import NOON

DAY = "2026-03-01..2026-03-03"
NEWER = wire.ProbeIdentity("circle", "99", "0" * 64)


def printed(*arguments: str) -> str:
    output = io.StringIO()
    call_command("stats", *arguments, stdout=output)
    return output.getvalue()


def document(*arguments: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(printed(*arguments, "--json"))
    return loaded


def refusal(*arguments: str) -> str:
    with pytest.raises(CommandError) as refused:
        printed(*arguments)
    return str(refused.value)


def test_the_table_has_a_row_for_each_stage_and_total(circle: Series) -> None:
    ring_runs(NOON, [4.0, 6.0, 8.0])
    lines = printed("circle", "--window", DAY).splitlines()
    assert lines[0] == "circle, segment 1, 2026-03-01 00:00 to 2026-03-03 00:00 UTC: 3 passed runs"
    assert lines[3:12] == [
        "Durations, seconds",
        "Stage          n  Mean   Min    Max  Std. dev.     CV",
        "Init           3  1.00  1.00   1.00       0.00   0.00",
        "Transfer ring  3  6.00  4.00   8.00       2.00  0.333",
        "Compare        3  1.00  1.00   1.00       0.00   0.00",
        "Cleanup        3  1.00  1.00   1.00       0.00   0.00",
        "Total (i)      3  9.00  7.00  11.00       2.00  0.222",
        "Total (ii)     3  7.00  5.00   9.00       2.00  0.286",
        "Total (iii)    3  7.00  5.00   9.00       2.00  0.286",
    ]


def test_the_histogram_of_a_total_counts_standard_deviations(circle: Series) -> None:
    ring_runs(NOON, [4.0, 6.0, 8.0])
    text = printed("circle", "--window", DAY)
    assert "Total (i) in standard deviations from the mean: 9.00 s, standard deviation 2.00 s" in text
    assert "-1.0 to -0.5     1  33.3 %" in text


def test_a_change_point_is_listed_with_the_recorded_change(circle: Series) -> None:
    ring_runs(NOON, [4.0, 4.1] * 6)
    ring_runs(NOON + 12 * HOUR, [8.0, 8.1] * 6, probe=NEWER)
    text = printed("circle", "--window", DAY)
    version = circle_report(NOON).probe.version
    assert f"probe circle {version} -> 99 (2026-03-02 00:00)" in text
    assert "12 passed runs, 12 in other segments" in text


def test_the_correlation_with_a_named_probe_is_a_table_for_each_lag_with_pairs(circle: Series) -> None:
    another_series("app", circle)
    ring_runs(NOON, [4.0, 7.0, 5.0, 9.0])
    ring_runs(NOON + 10 * MINUTE, [3.0, 6.0, 4.0, 8.0], series="app")
    text = printed("app", "--window", DAY, "--with", "circle")
    assert "Correlation with circle, right after: Pearson's r (pairs of runs)" in text
    assert "+1.00 (4)" in text
    assert "simultaneous" not in text
    by_lag = document("app", "--window", DAY, "--with", "circle")["correlations"][0]["by_lag"]
    assert list(by_lag) == ["simultaneous", "right after", "30 minutes"]


def test_the_json_is_the_same_each_time_and_has_every_figure(circle: Series) -> None:
    ring_runs(NOON, [4.0, 6.0, 8.0])
    assert printed("circle", "--window", DAY, "--json") == printed("circle", "--window", DAY, "--json")
    shown = document("circle", "--window", DAY)
    assert (shown["series"], shown["start"], shown["runs"]) == ("circle", "2026-03-01T00:00:00Z", 3)
    total = shown["totals"]["total.seconds"]
    assert (total["mean"], total["stdev"], total["quantiles"]["0.5"]) == (9.0, 2.0, 9.0)
    assert shown["variance_shares"]["stage.transfer_ring.seconds"] == pytest.approx(1.0)
    assert shown["change_points"]["total.seconds"] == []


def test_a_single_run_has_no_spread_and_no_histogram(circle: Series) -> None:
    ring_runs(NOON, [4.0])
    assert "standard deviations from the mean" not in printed("circle", "--window", DAY)
    assert document("circle", "--window", DAY)["totals"]["total.seconds"]["stdev"] is None


def test_latex_has_a_tabular_for_each_table(circle: Series) -> None:
    ring_runs(NOON, [4.0, 6.0, 8.0])
    text = printed("circle", "--window", DAY, "--latex")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 5
    assert r"Transfer ring & 3 & 6.00 & 4.00 & 8.00 & 2.00 & 0.333 \\" in text
    assert r"& 33.3 \% \\" in text


def test_latex_escapes_what_has_a_meaning_there() -> None:
    assert latex_escaped("a_b & 5 % #1 {x} $y\\z~^ ->\n2") == (
        r"a\_b \& 5 \% \#1 \{x\} \$y\textbackslash{}z\textasciitilde{}\textasciicircum{} -\textgreater{} 2"
    )
    table = StatisticsTable("of a\nb", ("a_b", "n"), [("x&y", "1")])
    assert as_latex(table).splitlines()[0] == "% of a b"
    assert r"x\&y & 1 \\" in as_latex(table)
    assert as_text(table).splitlines() == ["of a", "b", "a_b  n", "x&y  1"]


def test_stages_are_named_as_in_the_study() -> None:
    metrics = ["stage.stage_data.seconds", "stage.queue_wait.seconds", "total_core.seconds"]
    assert [label(metric) for metric in metrics] == ["Stage data", "Queue wait", "Total (iii)"]


def test_an_unknown_series_is_refused_with_near_names(circle: Series) -> None:
    assert refusal("circel") == "there is no series 'circel'; near names: circle"
    assert refusal("zzz") == "there is no series 'zzz'; no series has a near name"
    ring_runs(NOON, [4.0])
    assert refusal("circle", "--with", "circl") == "there is no series 'circl'; near names: circle"


def test_a_window_without_passed_runs_is_refused(circle: Series) -> None:
    ring_runs(NOON, [4.0])
    assert "no run of circle with stages passed" in refusal("circle", "--window", "2026-04-01..2026-04-02")


@pytest.mark.parametrize(
    "window",
    [
        "0001-01-01..2026-03-01",
        "0001-01-01T00:00+14:00..2026-03-01",
        "",
        "30",
        "0d",
        "-3d",
        "99999d",
        "..",
        "2026-03-01",
        "2026-03-01..",
        "2026-02-30..2026-03-01",
        "x..y",
    ],
)
def test_a_malformed_window_is_refused(window: str) -> None:
    with pytest.raises(CommandError, match="--window: "):
        _window(window, NOON)


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(CommandError, match="a start before the end"):
        _window("2026-03-02..2026-03-01", NOON)


def test_a_window_is_days_until_now_or_two_times() -> None:
    assert _window("7d", NOON) == (NOON - 7 * 24 * HOUR, NOON)
    assert _window("2026-03-01T13:00+01:00..2026-03-02", NOON) == (NOON, NOON + 12 * HOUR)
