"""Randomly disturbed runs over every way: no disturbance may leave files, jobs or processes.

``make soak`` does two hundred with a new seed each time. GRIDCAST_SOAK_RUNS sets their number,
GRIDCAST_SOAK_SEED the seed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import probes
from monitor.testbed.middleware.programs import missing
from monitor.testbed.weather.conditions import FAULT_KINDS
from reporters.report import Report
from tests.probes import ways
from tests.probes.ways import BINDINGS, COMPUTE, SITES, Way, flip_bit, open_way
from tests.waiting import eventually

RUNS = int(os.environ.get("GRIDCAST_SOAK_RUNS", "2"))
SEED = int(os.environ.get("GRIDCAST_SOAK_SEED", "7"))
RUN_IN_A_PROCESS = "import pickle, sys; from reporters.run import run; run(pickle.load(sys.stdin.buffer))"

pytestmark = [pytest.mark.grid, pytest.mark.chaos, pytest.mark.nightly]


@dataclass
class Soak:
    """The ways, the random choices, and the results so far."""

    ways: list[Way]
    chance: random.Random
    outcomes: Counter[str] = field(default_factory=Counter)
    combinations: list[tuple[Way, str]] = field(default_factory=list)
    broken_runs: list[str] = field(default_factory=list)

    def run_all(self, number: int) -> None:
        """Run random probes, each over the next way with the next disturbance."""
        disturbances = [
            self.killed,
            self.with_incident,
            self.with_fault,
            self.with_short_limit,
            self.undisturbed,
        ]
        turns = zip(itertools.cycle(self.ways), itertools.cycle(disturbances), strict=True)
        for way, disturb in itertools.islice(turns, number):
            self._run(way, self.chance.choice(list(BINDINGS)), disturb)

    def _run(self, way: Way, probe: str, disturb: Callable[[Way, str], Report | None]) -> None:
        if (way, probe) not in self.combinations:
            self.combinations.append((way, probe))
        try:
            report = disturb(way, probe)
        finally:
            way.clear_fault()
        self.outcomes[f"{disturb.__name__}: {report.outcome if report else 'no report'}"] += 1
        if report is not None and report.outcome == "broken":
            self.broken_runs.append(f"{probe} over {way.name}, {disturb.__name__}: {report.reason}")

    def undisturbed(self, way: Way, probe: str) -> Report:
        return way.run(probe)

    def with_fault(self, way: Way, probe: str) -> Report:
        mechanism = self.chance.choice(list(FAULT_KINDS))
        way.inject_fault(self.chance.choice(SITES), mechanism, self.chance.choice(FAULT_KINDS[mechanism]))
        return way.run(probe, limit_seconds=6.0)

    def with_short_limit(self, way: Way, probe: str) -> Report:
        return way.run(probe, limit_seconds=self.chance.uniform(0.1, 2.0))

    def killed(self, way: Way, probe: str) -> None:
        """Kill the reporter at a random time; the next run of the series removes its remains."""
        argv = [sys.executable, "-c", RUN_IN_A_PROCESS]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True) as reporter:
            assert reporter.stdin is not None
            reporter.stdin.write(pickle.dumps(way.assignment(probe)))
            reporter.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                reporter.wait(self.chance.uniform(0.3, 2.5))
            reporter.send_signal(signal.SIGKILL)

    def with_incident(self, way: Way, probe: str) -> Report:
        """Let an incident happen shortly after the start of a random stage."""
        action = self.chance.choice([kill_processes, flip_bits, cancel_jobs, close_queue])
        stage = self.chance.choice([stage.name for stage in probes.load(probe).stages])
        incident = threading.Timer(self.chance.choice([0.0, 0.1, 0.3]), action, [way])
        try:
            return way.run(probe, limit_seconds=8.0, at_stage={stage: incident.start})
        finally:
            incident.cancel()
            if incident.is_alive():
                incident.join()
            if way.cluster is not None:
                way.cluster.open_partitions()


def kill_processes(way: Way) -> None:
    """Kill all programs of the current run, at the sites and at the reporter."""
    for pid in way.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def flip_bits(way: Way) -> None:
    for file in way.files():
        with contextlib.suppress(OSError):
            if file.stat().st_size and file.suffix == ".dat":
                flip_bit(file)


def cancel_jobs(way: Way) -> None:
    if way.cluster is not None:
        way.cluster.run("scancel", f"--user={os.geteuid()}")


def close_queue(way: Way) -> None:
    if way.cluster is not None:
        way.cluster.close_partitions()
    else:
        way.inject_fault(COMPUTE, "queue", "stuck")


@pytest.fixture
def soak() -> Iterator[Soak]:
    with contextlib.ExitStack() as stack:
        names = [name for name, needed in ways.NEEDED.items() if not missing(needed)]
        yield Soak([stack.enter_context(open_way(name)) for name in names], random.Random(SEED))


def test_disturbed_runs_leave_nothing(soak: Soak, record_property: Any) -> None:
    soak.run_all(RUNS)
    for way, probe in soak.combinations:
        last = way.run(probe)
        assert last.outcome == "passed", f"seed {SEED}: {last.reason}"
    for way in soak.ways:
        assert way.files() == [], f"seed {SEED}"
        assert eventually(way.is_idle), f"seed {SEED}: {way.jobs()}, {way.processes()}"
    assert soak.broken_runs == [], f"seed {SEED}"
    record_property("outcomes", dict(soak.outcomes))
    print(f"seed {SEED}:", dict(sorted(soak.outcomes.items())))
