"""Over real, scaled runs of Gather the measured stages follow what the weather has drawn."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from monitor.testbed.sites import GridDescription, Options, running_sites
from monitor.testbed.weather.climate import STEP_SECONDS
from monitor.testbed.weather.conditions import MECHANISMS, Conditions
from monitor.testbed.weather.generator import Weather
from reporters.config import Assignment
from reporters.report import Report
from reporters.run import run

RUNS = 20
AT_ONCE = 2
LIMIT_SECONDS = 180.0
OPTIONS = Options(profile="teragrid", seed=1, scale=20.0)
# Of a share of the CPUs that others take meanwhile: a run on a machine that is busy with other things proves
# nothing about the sites when it is late.
DISTURBED_SHARE = 0.15


@dataclass(frozen=True)
class Machine:
    """CPU seconds so far: of the whole machine (that are not idle), and of this process and its children."""

    time: float
    busy: float
    own: float

    @classmethod
    def now(cls) -> Machine:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle = ticks[3] + ticks[4]
        usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        return cls(time.monotonic(), (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK"), own)

    def others_share_since(self, before: Machine) -> float:
        """The share of all CPUs that others have used since *before*."""
        others = (self.busy - before.busy) - (self.own - before.own)
        return others / (self.time - before.time) / (os.cpu_count() or 1)


def fair_steps(weather: Weather, number: int) -> list[int]:
    """Steps without a fault, from the quicker half of three weeks: what takes minutes proves no more.

    What is drawn for a transfer must not be shorter than five scp that share this machine.
    """
    fair = [
        step
        for step in range(9000)
        if weather.at(step).fault is None and weather.at(step).seconds["inbound"] / OPTIONS.scale >= 0.4
    ]
    by_length = sorted(fair, key=lambda step: sum(weather.at(step).seconds.values()))
    return by_length[: len(by_length) // 2 : len(by_length) // 2 // number][:number]


def gather(grid: GridDescription, step: int, attempt: int) -> Report:
    """A real run of Gather in the weather of *step*."""
    begins = timedelta(seconds=(step + 0.5) * STEP_SECONDS / grid.scale)
    return run(
        Assignment(
            series=f"gather-{step}-{attempt}",
            slot=grid.epoch + begins,
            reporter="test",
            probe="gather",
            bindings={"sources": grid.sources, "compute": [grid.compute], "destination": [grid.destination]},
            resources=grid.resources,
            parameters={
                "file_bytes": grid.reference_file_bytes,
                "result_bytes": grid.reference_result_bytes,
            },
            limit_seconds=120.0,
        )
    )


def deviations(report: Report, drawn: Conditions, scale: float) -> list[str]:
    """The stages of a run that do not follow what was drawn within 15 % + 0.2 s, in words."""
    assert report.outcome == "passed", report.reason
    measured = {stage.name: stage.seconds for stage in report.stages}
    wanted = {stage: drawn.seconds[mechanism] / scale for mechanism, stage in MECHANISMS.items()}
    return [
        f"step {drawn.index}: {stage} took {measured[stage]:.2f} s, drawn were {seconds:.2f} s"
        for stage, seconds in wanted.items()
        if abs(measured[stage] - seconds) > 0.15 * seconds + 0.2
    ]


def attempt(
    grid: GridDescription, weather: Weather, steps: Iterable[int], number: int
) -> tuple[list[int], list[str]]:
    """One run in the weather of each of *steps*: those that a busy machine has spoilt, and what was wrong else."""

    def one(step: int) -> tuple[int, list[str], float]:
        before = Machine.now()
        report = gather(grid, step, number)
        disturbed = Machine.now().others_share_since(before)
        return step, deviations(report, weather.at(step), grid.scale), disturbed

    with ThreadPoolExecutor(AT_ONCE) as lanes:
        results = list(lanes.map(one, steps))
    spoilt = [step for step, wrong, others in results if wrong and others > DISTURBED_SHARE]
    return spoilt, [line for step, wrong, _ in results if step not in spoilt for line in wrong]


@pytest.mark.grid
def test_measured_stages_follow_the_drawn_ones(tmp_path: Path) -> None:
    weather = Weather(OPTIONS.profile, OPTIONS.seed, OPTIONS.sites)
    until = time.monotonic() + LIMIT_SECONDS
    with running_sites(tmp_path, options=OPTIONS) as grid:
        left, number, wrong = fair_steps(weather, RUNS), 0, list[str]()
        while left and not wrong and time.monotonic() < until:
            left, wrong = attempt(grid, weather, left, number)
            number += 1
        assert not wrong
        assert not any(
            path.is_file() for name in grid.sites for path in Path(grid.resources[name].scratch).rglob("*")
        )
    if left:
        pytest.skip(f"others use this machine too much: {len(left)} of {RUNS} runs could not be judged")
