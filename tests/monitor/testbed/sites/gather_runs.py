"""Real runs of Gather in the weather of chosen steps; the bench uses them too."""

from __future__ import annotations

from datetime import timedelta

from monitor.testbed.sites import GridDescription
from monitor.testbed.weather.climate import CYCLE_STEPS, STEP_SECONDS
from monitor.testbed.weather.conditions import Conditions
from monitor.testbed.weather.generator import Weather
from reporters.config import Assignment
from reporters.report import Report
from reporters.run import run

SCALE = 20.0
LEAST_SECONDS = {"inbound": 0.45, "unlink": 0.25}  # of five simultaneous copies; of seven simultaneous sites


def fair_steps(weather: Weather, number: int) -> list[int]:
    """Return *number* steps without a fault from the quicker eighth of three weeks, to keep runs short.

    The drawn times are not shorter than the sessions alone take when they share two CPUs.
    """

    def is_fair(drawn: Conditions) -> bool:
        is_slow_enough = all(drawn.seconds[name] / SCALE >= least for name, least in LEAST_SECONDS.items())
        return drawn.fault is None and is_slow_enough

    fair = [step for step in range(CYCLE_STEPS) if is_fair(weather.at(step))]
    by_length = sorted(fair, key=lambda step: sum(weather.at(step).seconds.values()))
    return by_length[: len(by_length) // 8 : len(by_length) // 8 // number][:number]


def gather(grid: GridDescription, step: int, series: str) -> Report:
    """Run Gather in the weather of *step*; the run must pass."""
    begin = timedelta(seconds=(step + 0.5) * STEP_SECONDS / grid.scale)
    assignment = Assignment(
        series=series,
        slot=grid.epoch + begin,
        reporter="test",
        probe="gather",
        bindings={"sources": grid.sources, "compute": [grid.compute], "destination": [grid.destination]},
        resources=grid.resources,
        parameters={"file_bytes": grid.reference_file_bytes, "result_bytes": grid.reference_result_bytes},
        limit_seconds=240.0,
    )
    report = run(assignment)
    assert report.outcome == "passed", report.reason
    return report
