"""Over real, scaled runs of Gather the measured stages follow what the weather has drawn."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from monitor.testbed.sites import GridDescription
from monitor.testbed.weather.climate import CYCLE_STEPS, STEP_SECONDS
from monitor.testbed.weather.conditions import MECHANISMS, Conditions
from monitor.testbed.weather.generator import Weather
from reporters.config import Assignment
from reporters.report import Report
from reporters.run import run
from tests.monitor.testbed.sites.conftest import served

RUNS = 12
AT_ONCE = (4, 2)  # a machine that is too slow for four runs at once gets a second chance with two
STAGGER_SECONDS = 2.0
SCALE = 20.0
LEAST_SECONDS = {"inbound": 0.45, "unlink": 0.25}  # five copies at once; seven sites at once


def fair_steps(weather: Weather, number: int) -> list[int]:
    """Steps without a fault, from the quicker eighth of three weeks: what takes minutes proves no more.

    What is drawn must not be shorter than what the sessions alone take that share two CPUs.
    """

    def is_fair(drawn: Conditions) -> bool:
        slow_enough = all(drawn.seconds[name] / SCALE >= least for name, least in LEAST_SECONDS.items())
        return drawn.fault is None and slow_enough

    fair = [step for step in range(CYCLE_STEPS) if is_fair(weather.at(step))]
    by_length = sorted(fair, key=lambda step: sum(weather.at(step).seconds.values()))
    return by_length[: len(by_length) // 8 : len(by_length) // 8 // number][:number]


def gather(grid: GridDescription, step: int, series: str) -> Report:
    """A real run of Gather in the weather of *step*."""
    begins = timedelta(seconds=(step + 0.5) * STEP_SECONDS / grid.scale)
    assignment = Assignment(
        series=series,
        slot=grid.epoch + begins,
        reporter="test",
        probe="gather",
        bindings={"sources": grid.sources, "compute": [grid.compute], "destination": [grid.destination]},
        resources=grid.resources,
        parameters={"file_bytes": grid.reference_file_bytes, "result_bytes": grid.reference_result_bytes},
        limit_seconds=120.0,
    )
    report = run(assignment)
    assert report.outcome == "passed", report.reason
    return report


def gather_in_lanes(grid: GridDescription, steps: list[int], lanes: int) -> dict[int, Report]:
    """A run in the weather of each of *steps*, so many *lanes* at a time."""

    def lane(start: int) -> list[tuple[int, Report]]:
        time.sleep(start * STAGGER_SECONDS)  # runs that all log in at one moment are not what a schedule does
        return [(step, gather(grid, step, f"gather-{step}-{lanes}")) for step in steps[start::lanes]]

    with ThreadPoolExecutor(lanes) as pool:
        return dict(pair for pairs in pool.map(lane, range(lanes)) for pair in pairs)


def wrong_means(weather: Weather, reports: dict[int, Report]) -> dict[str, tuple[float, float]]:
    """Of each stage whose mean is not what was drawn: the seconds measured and drawn."""
    wrong = {}
    for number, (mechanism, stage) in enumerate(MECHANISMS.items()):
        assert {report.stages[number].name for report in reports.values()} == {stage}
        measured = statistics.fmean(report.stages[number].seconds for report in reports.values())
        drawn = statistics.fmean(weather.at(step).seconds[mechanism] / SCALE for step in reports)
        if abs(measured - drawn) > 0.15 * drawn + 0.2:
            wrong[stage] = (measured, drawn)
    return wrong


@pytest.mark.grid
@pytest.mark.alone
def test_measured_stages_follow_the_drawn_ones(tmp_path: Path) -> None:
    weather = Weather("teragrid", seed=1, sites=7)
    steps = fair_steps(weather, RUNS)
    with served(tmp_path, "--weather", "teragrid", "--seed", "1", "--scale", str(SCALE)) as (_, grid):
        gather(grid, steps[0], "warm-up")  # from which the sites learn what follows a slow step
        for lanes in AT_ONCE:
            wrong = wrong_means(weather, gather_in_lanes(grid, steps, lanes))
            if not wrong:
                break
        scratches = [Path(grid.resources[name].scratch) for name in grid.sites]
        assert not any(path.is_file() for scratch in scratches for path in scratch.rglob("*"))
    assert wrong == {}
