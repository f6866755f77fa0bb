"""The drawn figures compared with the published ones."""

import subprocess
import sys

import pytest

from monitor.testbed.weather import profiles
from monitor.testbed.weather.comparison import EXTREMES_RUNS, ComparisonRow, compare
from monitor.testbed.weather.generator import Weather


@pytest.mark.parametrize("profile", profiles.names())
def test_four_thousand_hourly_runs_have_every_published_figure(profile: str) -> None:
    weather = Weather(profile, 0)
    rows = compare(weather.profile, weather.draws(EXTREMES_RUNS))
    assert [str(row) for row in rows if not row.holds] == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1, 7, 2024])
@pytest.mark.parametrize("profile", profiles.names())
def test_ten_thousand_hourly_runs_have_every_published_figure(profile: str, seed: int) -> None:
    weather = Weather(profile, seed)
    rows = compare(weather.profile, weather.draws(10_000))
    assert [str(row) for row in rows if not row.holds] == []


@pytest.mark.parametrize("profile", ["teragrid", "geon"])
def test_the_comparison_covers_stages_totals_correlations_and_success(profile: str) -> None:
    weather = Weather(profile, 0)
    rows = compare(weather.profile, weather.draws(4000))
    published = weather.profile.published
    four_figures = 8 + len(published.totals)
    others = 2 * len(published.preco) + len(published.correlations) + len(published.passed)
    assert len(rows) == 4 * four_figures + others


@pytest.mark.parametrize(
    ("drawn", "relative", "holds"),
    [(10.9, True, True), (11.1, True, False), (8.9, True, False), (10.09, False, True), (9.8, False, False)],
)
def test_a_tolerance_is_a_share_or_a_number_in_both_directions(
    drawn: float, relative: bool, holds: bool
) -> None:
    assert ComparisonRow("x", "mean", 10.0, drawn, 0.1, relative).holds is holds


def test_the_command_prints_a_table_and_exits_with_0_if_every_figure_holds() -> None:
    command = [sys.executable, "-m", "monitor.testbed.weather", "--profile", "geon", "--runs", "4000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "| Gather init | mean | 96.66 | 96." in done.stdout
    assert "NO" not in done.stdout


def test_the_command_refuses_too_few_runs_to_compare_extremes() -> None:
    command = [sys.executable, "-m", "monitor.testbed.weather", "--runs", "100"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "at least 4000 runs" in done.stderr
