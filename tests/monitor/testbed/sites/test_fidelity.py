"""Over real, scaled runs of Gather the measured stages follow what the weather has drawn."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
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

RUNS = 20
AT_ONCE = 2
STAGGER_SECONDS = 4.0
REPEATED = 5  # runs at most that others have spoilt
SCALE = 20.0
LEAST_SECONDS = {"inbound": 0.45, "unlink": 0.25}  # five copies at once; seven sites at once
# Of all CPUs, taken by others during a stage: on a machine that is busy otherwise a late stage proves nothing
# about the sites.
DISTURBED_SHARE = 0.2


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

    What is drawn must not be shorter than what the sessions alone take that share two CPUs.
    """

    def is_fair(drawn: Conditions) -> bool:
        slow_enough = all(drawn.seconds[name] / SCALE >= least for name, least in LEAST_SECONDS.items())
        return drawn.fault is None and slow_enough

    fair = [step for step in range(CYCLE_STEPS) if is_fair(weather.at(step))]
    by_length = sorted(fair, key=lambda step: sum(weather.at(step).seconds.values()))
    return by_length[: len(by_length) // 4 : len(by_length) // 4 // number][:number]


def gather(
    grid: GridDescription, step: int, attempt: int, on_stage: Callable[[str], None] = lambda _: None
) -> Report:
    """A real run of Gather in the weather of *step*."""
    begins = timedelta(seconds=(step + 0.5) * STEP_SECONDS / grid.scale)
    assignment = Assignment(
        series=f"gather-{step}-{attempt}",
        slot=grid.epoch + begins,
        reporter="test",
        probe="gather",
        bindings={"sources": grid.sources, "compute": [grid.compute], "destination": [grid.destination]},
        resources=grid.resources,
        parameters={"file_bytes": grid.reference_file_bytes, "result_bytes": grid.reference_result_bytes},
        limit_seconds=120.0,
    )
    return run(assignment, on_stage=on_stage)


@dataclass(frozen=True)
class Judged:
    """One run in the weather of *step*: what was wrong, and whether others may have done it."""

    step: int
    wrong: list[str]
    spoilt: bool


def judged(grid: GridDescription, drawn: Conditions, attempt: int) -> Judged:
    """Run Gather once; a stage must take what was drawn within 15 % + 0.2 s."""
    begun: list[Machine] = []
    report = gather(grid, drawn.index, attempt, lambda _: begun.append(Machine.now(grid.pid)))
    assert report.outcome == "passed", report.reason
    begun.append(Machine.now(grid.pid))
    shares = [after.others_share_since(before) for before, after in pairwise(begun)]
    wrong, spoilt = [], False
    for number, (mechanism, stage) in enumerate(MECHANISMS.items()):
        measured, seconds = report.stages[number].seconds, drawn.seconds[mechanism] / grid.scale
        assert report.stages[number].name == stage
        if abs(measured - seconds) > 0.15 * seconds + 0.2:
            others = max(shares[max(0, number - 2) : number + 1])  # what is late is felt for a while
            spoilt = spoilt or others > DISTURBED_SHARE
            wrong.append(f"step {drawn.index}: {stage} took {measured:.2f} s, drawn were {seconds:.2f} s")
    return Judged(drawn.index, wrong, spoilt)


def attempt(grid: GridDescription, weather: Weather, steps: list[int], number: int) -> list[Judged]:
    """A run in the weather of each of *steps*."""

    def lane(start: int) -> list[Judged]:
        time.sleep(start * STAGGER_SECONDS)  # runs that all log in at one moment are not what a schedule does
        return [judged(grid, weather.at(step), number) for step in steps[start::AT_ONCE]]

    with ThreadPoolExecutor(AT_ONCE) as lanes:
        return [one for results in lanes.map(lane, range(AT_ONCE)) for one in results]


@pytest.mark.grid
@pytest.mark.alone
def test_measured_stages_follow_the_drawn_ones(tmp_path: Path) -> None:
    weather = Weather("teragrid", seed=1, sites=7)
    steps = fair_steps(weather, RUNS)
    with served(tmp_path, "--weather", "teragrid", "--seed", "1", "--scale", str(SCALE)) as (_, grid):
        assert gather(grid, steps[0], 0).outcome == "passed"  # from which the sites learn
        runs = attempt(grid, weather, steps, 1)
        spoilt = [one.step for one in runs if one.spoilt]
        if 0 < len(spoilt) <= REPEATED:
            runs = [one for one in runs if not one.spoilt] + attempt(grid, weather, spoilt, 2)
            spoilt = [one.step for one in runs if one.spoilt]
        assert [line for one in runs if not one.spoilt for line in one.wrong] == []
        scratches = [Path(grid.resources[name].scratch) for name in grid.sites]
        assert not any(path.is_file() for scratch in scratches for path in scratch.rglob("*"))
    if spoilt:
        pytest.skip(f"others use this machine too much: {len(spoilt)} of {RUNS} runs could not be judged")
