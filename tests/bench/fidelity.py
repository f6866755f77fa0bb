"""The share of stages of real Gather runs that take the drawn time, within 15 % + 0.2 s."""

from __future__ import annotations

import tempfile
from pathlib import Path

from monitor.testbed.weather.conditions import MECHANISMS
from monitor.testbed.weather.generator import Weather
from tests.bench.base import Result
from tests.monitor.testbed.sites.gather_runs import SCALE, fair_steps, gather
from tests.monitor.testbed.sites.local_grid import served

RUNS = 20


def measure() -> list[Result]:
    weather = Weather("teragrid", seed=1, sites=7)
    errors: dict[str, list[float]] = {stage: [] for stage in MECHANISMS.values()}
    near = 0
    with (
        tempfile.TemporaryDirectory() as directory,
        served(Path(directory), "--weather", "teragrid", "--seed", "1", "--scale", str(SCALE)) as (_, grid),
    ):
        steps = fair_steps(weather, RUNS)
        gather(grid, steps[0], "warm-up")
        for step in steps:
            stages = gather(grid, step, f"gather-{step}").stages
            for stage, mechanism in zip(stages, MECHANISMS, strict=True):
                drawn = weather.at(step).seconds[mechanism] / SCALE
                errors[stage.name].append(abs(stage.seconds - drawn))
                near += errors[stage.name][-1] <= 0.15 * drawn + 0.2
    return [
        Result(
            name="single stages as drawn / stages",
            ratio=near / (RUNS * len(MECHANISMS)),
            target=0.95,
            better="higher",
            figures={f"{name}, largest error, ms": max(values) * 1000 for name, values in errors.items()},
        )
    ]
