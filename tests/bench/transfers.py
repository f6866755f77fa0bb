"""Gather's parallel copies against the same copies made by hand, and what a run costs beside its stages.

Real OpenSSH servers; the stage's seconds are those of the report. By hand is scp at the sources, started over
connections that are open already, to a new name that then takes the file's, without any check; it is done in
the place of that stage, so that the disk and the processors have as much to do meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from monitor.testbed.middleware.openssh import Clients, Server, sshd
from probes import gather
from probes.base import Metric, in_parallel
from reporters import run
from reporters.config import Assignment
from reporters.report import Report
from tests.bench.base import Result

SOURCES = ("anl", "iu", "ornl", "tacc", "purdue")
COMPUTE, DESTINATION = "ncsa", "sdsc"
FILE_BYTES = 100_000_000
PAIRS = 9


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, _sites(Path(directory)) as sites:
        _run(sites, gather.Probe, 0)  # the first reads programs from the disk
        pairs = [_pair(sites, number) for number in range(PAIRS)]
    return [_copies(pairs), _overhead([pair.ours for pair in pairs])]


@dataclass(frozen=True)
class Sites:
    clients: Clients
    servers: dict[str, Server]


@dataclass(frozen=True)
class Pair:
    """A run of Gather, and one with its copies made by hand, just before or after it."""

    ours: Report
    by_hand: Report

    @property
    def ratio(self) -> float:
        return copies_seconds(self.by_hand) / copies_seconds(self.ours)


def copies_seconds(report: Report) -> float:
    (stage,) = (stage for stage in report.stages if stage.name == "transfer_data")
    return stage.seconds


def _copies(pairs: list[Pair]) -> Result:
    rate = FILE_BYTES * len(SOURCES) / 1e6
    return Result(
        name="Gather's copies / the same by hand",
        ratio=statistics.median(pair.ratio for pair in pairs),
        target=0.95,
        better="higher",
        figures={
            "ours, MB/s": rate / statistics.median(copies_seconds(pair.ours) for pair in pairs),
            "by hand, MB/s": rate / statistics.median(copies_seconds(pair.by_hand) for pair in pairs),
        },
    )


def _overhead(reports: list[Report]) -> Result:
    """What is in no stage: getting ready, and the report itself."""
    outside = [report.seconds - sum(stage.seconds for stage in report.stages) for report in reports]
    return Result(
        name="outside Gather's stages / the run",
        ratio=statistics.median(one / report.seconds for one, report in zip(outside, reports, strict=True)),
        target=0.03,
        better="lower",
        figures={
            "outside, ms": 1e3 * statistics.median(outside),
            "the run, s": statistics.median(report.seconds for report in reports),
        },
    )


def _pair(sites: Sites, number: int) -> Pair:
    """In turns first and second, so that a machine that gets slower or faster favours neither."""
    slots = itertools.count(2 * number + 1)
    if number % 2:
        by_hand = _run(sites, _by_hand(sites), next(slots))
        return Pair(_run(sites, gather.Probe, next(slots)), by_hand)
    return Pair(_run(sites, gather.Probe, next(slots)), _run(sites, _by_hand(sites), next(slots)))


def _run(sites: Sites, probe: Any, number: int) -> Report:
    report = run.run(
        Assignment(
            series="bench",
            slot=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
            reporter="home",
            probe="gather",
            bindings={"sources": SOURCES, "compute": [COMPUTE], "destination": [DESTINATION]},
            resources={name: sites.clients.resource(server) for name, server in sites.servers.items()},
            parameters={"file_bytes": FILE_BYTES, "result_bytes": FILE_BYTES // 100},
        ),
        tools=run.Tools(load=lambda _: probe),
    )
    if report.outcome != "passed":
        raise AssertionError(f"Gather {report.outcome}: {report.reason}")
    return report


def _by_hand(sites: Sites) -> type[gather.Probe]:
    class ByHand(gather.Probe):
        """Gather, but for who copies its inputs."""

        def transfer_data(self) -> list[Metric]:
            in_parallel(self._copy, self.sources)
            return []

        def _copy(self, source: str) -> None:
            made = f"{self.grid.scratch(source)}/source.dat"
            target = f"{self.grid.scratch(COMPUTE)}/input-{source}.dat"
            _ssh(sites, source, f"scp -B -q {made} {COMPUTE}:{target}.part")
            _ssh(sites, COMPUTE, f"mv {target}.part {target}")

    return ByHand


@contextlib.contextmanager
def _sites(directory: Path) -> Iterator[Sites]:
    clients = Clients(directory)
    with contextlib.ExitStack() as running:
        names = (*SOURCES, COMPUTE, DESTINATION)
        sites = Sites(clients, {name: running.enter_context(sshd(name, clients)) for name in names})
        for name in (*SOURCES, COMPUTE):
            _ssh(sites, name, "true", "-o", "ControlMaster=yes", "-o", "ControlPersist=yes")
            running.callback(_ssh, sites, name, "", "-O", "exit")
        yield sites


def _ssh(sites: Sites, name: str, command: str, *options: str) -> None:
    """Over the connection that is open."""
    shared = ["-F", str(sites.clients.config_file), "-S", str(sites.clients.directory / f"{name}.master")]
    subprocess.run(["ssh", *shared, *options, name, command], check=True, stderr=subprocess.DEVNULL)
