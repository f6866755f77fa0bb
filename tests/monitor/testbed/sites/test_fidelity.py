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

from monitor.testbed.sites import GridDescription
from monitor.testbed.weather.climate import STEP_SECONDS
from monitor.testbed.weather.conditions import MECHANISMS, Conditions
from monitor.testbed.weather.generator import Weather
from reporters.config import Assignment
from reporters.report import Report
from reporters.run import run
from tests.monitor.testbed.sites.conftest import served

RUNS = 20
AT_ONCE = 2
LIMIT_SECONDS = 100.0  # after that no other attempt is made
SCALE = 20.0
# Of a share of the CPUs that others take meanwhile: a run on a machine that is busy with other things proves
# nothing about the sites when it is late.
DISTURBED_SHARE = 0.15


@dataclass(frozen=True)
class Machine:
    """CPU seconds so far: of the whole machine (that are not idle), and of the reporter and the sites."""

    time: float
    busy: float
    ours: float

    @classmethod
    def now(cls, sites: int) -> Machine:
        """*sites* is the process that serves them."""
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        of_sites = Path(f"/proc/{sites}/stat").read_text().rpartition(")")[2].split()[11:15]
        usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        second = os.sysconf("SC_CLK_TCK")
        ours = sum(usage.ru_utime + usage.ru_stime for usage in usages) + sum(map(int, of_sites)) / second
        return cls(time.monotonic(), (sum(ticks) - ticks[3] - ticks[4]) / second, ours)

    def others_share_since(self, before: Machine) -> float:
        """The share of all CPUs that others have used since *before*."""
        others = (self.busy - before.busy) - (self.ours - before.ours)
        return others / (self.time - before.time) / (os.cpu_count() or 1)


def fair_steps(weather: Weather, number: int) -> list[int]:
    """Steps without a fault, from the quicker quarter of three weeks: what takes minutes proves no more.

    What is drawn for a transfer must not be shorter than five scp that share two CPUs.
    """
    fair = [
        step
        for step in range(9000)
        if weather.at(step).fault is None and weather.at(step).seconds["inbound"] / SCALE >= 0.4
    ]
    by_length = sorted(fair, key=lambda step: sum(weather.at(step).seconds.values()))
    return by_length[: len(by_length) // 4 : len(by_length) // 4 // number][:number]


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
    """A run in the weather of each of *steps*: which ones others have spoilt, and what else was wrong."""

    def one(step: int) -> tuple[int, list[str], float]:
        before = Machine.now(grid.pid)
        report = gather(grid, step, number)
        disturbed = Machine.now(grid.pid).others_share_since(before)
        return step, deviations(report, weather.at(step), grid.scale), disturbed

    with ThreadPoolExecutor(AT_ONCE) as lanes:
        results = list(lanes.map(one, steps))
    spoilt = [step for step, wrong, others in results if wrong and others > DISTURBED_SHARE]
    return spoilt, [line for step, wrong, _ in results if step not in spoilt for line in wrong]


@pytest.mark.grid
def test_measured_stages_follow_the_drawn_ones(tmp_path: Path) -> None:
    weather = Weather("teragrid", seed=1, sites=7)
    until = time.monotonic() + LIMIT_SECONDS
    with served(tmp_path, "--weather", "teragrid", "--seed", "1", "--scale", str(SCALE)) as (_, grid):
        left, number, wrong = fair_steps(weather, RUNS), 0, list[str]()
        while left and not wrong and time.monotonic() < until:
            left, wrong = attempt(grid, weather, left, number)
            number += 1
        assert not wrong
        scratches = [Path(grid.resources[name].scratch) for name in grid.sites]
        assert not any(path.is_file() for scratch in scratches for path in scratch.rglob("*"))
    if left:
        pytest.skip(f"others use this machine too much: {len(left)} of {RUNS} runs could not be judged")
