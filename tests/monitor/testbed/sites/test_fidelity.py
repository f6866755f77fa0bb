"""Real, scaled runs of Gather take at least the time that the weather has drawn; nightly: just that time."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from monitor.testbed.sites import GridDescription
from monitor.testbed.sites.run_clock import LONGEST_RESERVE_SECONDS
from monitor.testbed.weather.conditions import MECHANISMS
from monitor.testbed.weather.generator import Weather
from reporters.report import Report
from tests.monitor.testbed.sites.gather_runs import SCALE, fair_steps, gather
from tests.monitor.testbed.sites.local_grid import served

RUNS = 12
LANES = (4, 2)  # a machine too slow for four runs at once gets a second chance with two
STAGGER_SECONDS = 2.0
WEATHER = ("--weather", "teragrid", "--seed", "1", "--scale", str(SCALE))


@pytest.mark.grid
@pytest.mark.nightly
def test_a_run_of_gather_takes_at_least_as_long_as_was_drawn(tmp_path: Path) -> None:
    weather = Weather("teragrid", seed=1, sites=7)
    (step,) = fair_steps(weather, 1)
    with served(tmp_path, *WEATHER) as (_, grid):
        stages = gather(grid, step, "gather-once").stages
        assert not has_scratch_files(grid)
    assert [stage.name for stage in stages] == list(MECHANISMS.values())
    drawn_seconds = sum(weather.at(step).seconds.values()) / SCALE
    assert sum(stage.seconds for stage in stages) >= drawn_seconds - LONGEST_RESERVE_SECONDS


@pytest.mark.grid
@pytest.mark.nightly
def test_measured_stages_follow_the_drawn_ones(tmp_path: Path) -> None:
    weather = Weather("teragrid", seed=1, sites=7)
    steps = fair_steps(weather, RUNS)
    with served(tmp_path, *WEATHER) as (_, grid):
        gather(grid, steps[0], "warm-up")  # the sites learn reserves from it
        for lanes in LANES:
            wrong = wrong_means(weather, gather_in_lanes(grid, steps, lanes))
            if not wrong:
                break
        assert not has_scratch_files(grid)
    assert wrong == {}


def has_scratch_files(grid: GridDescription) -> bool:
    scratches = [Path(grid.resources[name].scratch) for name in grid.sites]
    return any(path.is_file() for scratch in scratches for path in scratch.rglob("*"))


def gather_in_lanes(grid: GridDescription, steps: list[int], lanes: int) -> dict[int, Report]:
    """Run Gather in the weather of each of *steps*, *lanes* runs at a time."""

    def lane(start: int) -> list[tuple[int, Report]]:
        time.sleep(start * STAGGER_SECONDS)  # a schedule does not start all runs at one moment either
        return [(step, gather(grid, step, f"gather-{step}-{lanes}")) for step in steps[start::lanes]]

    with ThreadPoolExecutor(lanes) as pool:
        return dict(pair for pairs in pool.map(lane, range(lanes)) for pair in pairs)


def wrong_means(weather: Weather, reports: dict[int, Report]) -> dict[str, tuple[float, float]]:
    """Return the measured and the drawn mean seconds of each stage for which they differ."""
    wrong = {}
    for number, (mechanism, stage) in enumerate(MECHANISMS.items()):
        assert {report.stages[number].name for report in reports.values()} == {stage}
        measured = statistics.fmean(report.stages[number].seconds for report in reports.values())
        drawn = statistics.fmean(weather.at(step).seconds[mechanism] / SCALE for step in reports)
        if abs(measured - drawn) > 0.15 * drawn + 0.2:
            wrong[stage] = (measured, drawn)
    return wrong
