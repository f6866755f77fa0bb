"""Runs over every way, disturbed at random: whatever happens to them, nothing of them is left.

A few runs here; ``make soak`` does two hundred, of another course each time. GRIDCAST_SOAK_RUNS says how
many, GRIDCAST_SOAK_SEED which course.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import probes
from monitor.testbed.middleware.programs import missing
from monitor.testbed.weather.conditions import FAULT_KINDS
from reporters.report import Report
from tests.probes import ways
from tests.probes.ways import BINDINGS, COMPUTE, SITES, Way, damage, open_way
from tests.waiting import eventually

RUNS = int(os.environ.get("GRIDCAST_SOAK_RUNS", "4"))
SEED = int(os.environ.get("GRIDCAST_SOAK_SEED", "1"))
RUN_IN_A_PROCESS = "import pickle, sys; from reporters.run import run; run(pickle.load(sys.stdin.buffer))"

pytestmark = [pytest.mark.grid, pytest.mark.chaos]


@dataclass
class Soak:
    """Ways, and what is thrown at the runs over them."""

    ways: list[Way]
    chance: random.Random
    outcomes: Counter[str] = field(default_factory=Counter)
    used: list[tuple[Way, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def run(self) -> None:
        """One run of a random probe over a random way, with one disturbance."""
        way, probe = self.chance.choice(self.ways), self.chance.choice(list(BINDINGS))
        if (way, probe) not in self.used:
            self.used.append((way, probe))
        disturb = self.chance.choice(
            [self.in_peace, self.by_weather, self.in_a_hurry, self.killed, self.hurt]
        )
        try:
            report = disturb(way, probe)
        finally:
            way.mend()
        self.outcomes[f"{disturb.__name__}: {report.outcome if report else 'no report'}"] += 1
        if report is not None and report.outcome == "broken":
            self.broken.append(f"{probe} over {way.name}, {disturb.__name__}: {report.reason}")

    def in_peace(self, way: Way, probe: str) -> Report:
        return way.run(probe)

    def by_weather(self, way: Way, probe: str) -> Report:
        mechanism = self.chance.choice(list(FAULT_KINDS))
        way.break_(self.chance.choice(SITES), mechanism, self.chance.choice(FAULT_KINDS[mechanism]))
        return way.run(probe, limit_seconds=6.0)

    def in_a_hurry(self, way: Way, probe: str) -> Report:
        return way.run(probe, limit_seconds=self.chance.uniform(0.1, 2.0))

    def killed(self, way: Way, probe: str) -> None:
        """The reporter is killed at any moment. What it leaves, the next run of the series removes."""
        argv = [sys.executable, "-c", RUN_IN_A_PROCESS]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True) as reporter:
            assert reporter.stdin is not None
            reporter.stdin.write(pickle.dumps(way.assignment(probe)))
            reporter.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                reporter.wait(self.chance.uniform(0.3, 2.5))
            reporter.send_signal(signal.SIGKILL)

    def hurt(self, way: Way, probe: str) -> Report:
        """Something happens soon after the beginning of a stage."""
        action = self.chance.choice([cut_connections, damage_everything, cancel_jobs, close_the_queue])
        stage = self.chance.choice([stage.name for stage in probes.load(probe).stages])
        happens = threading.Timer(self.chance.choice([0.0, 0.1, 0.3]), action, [way])
        try:
            return way.run(probe, limit_seconds=8.0, at_stage={stage: happens.start})
        finally:
            happens.cancel()
            if happens.is_alive():
                happens.join()
            if way.cluster is not None:
                way.cluster.open_partitions()


def cut_connections(way: Way) -> None:
    """End all programs of the runs that are under way, at the sites and here."""
    for pid in way.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def damage_everything(way: Way) -> None:
    for file in way.files():
        with contextlib.suppress(OSError):
            if file.stat().st_size and file.suffix == ".dat":
                damage(file)


def cancel_jobs(way: Way) -> None:
    if way.cluster is not None:
        way.cluster.run("scancel", f"--user={os.geteuid()}")


def close_the_queue(way: Way) -> None:
    if way.cluster is not None:
        way.cluster.close_partitions()
    else:
        way.break_(COMPUTE, "queue", "stuck")


@pytest.fixture
def soak() -> Iterator[Soak]:
    with contextlib.ExitStack() as stack:
        possible = [name for name, needed in ways.NEEDED.items() if not missing(needed)]
        yield Soak([stack.enter_context(open_way(name)) for name in possible], random.Random(SEED))


def test_whatever_happens_to_runs_nothing_of_them_is_left(soak: Soak, record_property: Any) -> None:
    for _ in range(RUNS):
        soak.run()
    for way, probe in soak.used:
        last = way.run(probe)
        assert last.outcome == "passed", f"seed {SEED}: {last.reason}"
    for way in soak.ways:
        assert way.files() == [], f"seed {SEED}"
        assert eventually(way.is_idle), f"seed {SEED}: {way.jobs()}, {way.processes()}"
    assert soak.broken == [], f"seed {SEED}"
    record_property("outcomes", dict(soak.outcomes))
    print(f"seed {SEED}:", dict(sorted(soak.outcomes.items())))
