"""Gather's parallel copies against the same copies made by hand, and what a run costs beside its stages.

Real OpenSSH servers. By hand is scp at the sources, started over connections that are open already, to a new
name that then takes the file's, without any check; both begin together, so that what else the machine does
meanwhile hits both.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from monitor.testbed.middleware.openssh import SshClients, SshServer, sshd
from probes import gather
from probes.base import Measurement, in_parallel
from reporters import run
from reporters.config import Assignment
from reporters.report import Report
from tests.bench.base import Result, seconds

SOURCES = ("anl", "iu", "ornl", "tacc", "purdue")
COMPUTE, DESTINATION = "ncsa", "sdsc"
FILE_BYTES = 100_000_000
RUNS_ALONE = 3
PAIRS = 9


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, _sites(Path(directory)) as sites:
        _run(sites, gather.Probe, 0)  # the first reads programs from the disk
        alone = [_run(sites, gather.Probe, 1 + number) for number in range(RUNS_ALONE)]
        pairs = [_pair(sites, number) for number in range(PAIRS)]
    return [_copies(pairs), _overhead(alone)]


@dataclass(frozen=True)
class Sites:
    clients: SshClients
    servers: dict[str, SshServer]


@dataclass
class Pair:
    """The seconds that both sets of copies took, all begun together."""

    ours: float = 0.0
    by_hand: float = 0.0


def _copies(pairs: list[Pair]) -> Result:
    megabytes = FILE_BYTES * len(SOURCES) / 1e6
    return Result(
        name="Gather's copies / the same by hand",
        ratio=statistics.median(pair.by_hand / pair.ours for pair in pairs),
        target=0.95,
        better="higher",
        figures={
            "ours, MB/s": megabytes / statistics.median(pair.ours for pair in pairs),
            "by hand, MB/s": megabytes / statistics.median(pair.by_hand for pair in pairs),
        },
    )


def _overhead(reports: list[Report]) -> Result:
    """What is in no stage: getting ready, and the report itself."""
    outside = [report.seconds - sum(stage.seconds for stage in report.stages) for report in reports]
    return Result(
        name="outside Gather's stages / the run",
        ratio=statistics.median(
            seconds / report.seconds for seconds, report in zip(outside, reports, strict=True)
        ),
        target=0.03,
        better="lower",
        figures={
            "outside, ms": 1e3 * statistics.median(outside),
            "the run, s": statistics.median(report.seconds for report in reports),
        },
    )


def _pair(sites: Sites, number: int) -> Pair:
    pair = Pair()
    _run(sites, _beside_by_hand(sites, pair), 1 + RUNS_ALONE + number)
    return pair


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
        tools=run.RunnerTools(load=lambda _: probe),
    )
    if report.outcome != "passed":
        raise AssertionError(f"Gather {report.outcome}: {report.reason}")
    return report


def _beside_by_hand(sites: Sites, pair: Pair) -> type[gather.Probe]:
    class Beside(gather.Probe):
        """Gather, whose inputs are copied by hand as well, at the same time."""

        def transfer_data(self) -> list[Measurement]:
            in_parallel(lambda copy: copy(), [self._ours, self._by_hand])
            return []

        def _ours(self) -> None:
            pair.ours = seconds(super().transfer_data)

        def _by_hand(self) -> None:
            pair.by_hand = seconds(lambda: in_parallel(self._copy, self.sources))

        def _copy(self, source: str) -> None:
            source_file = f"{self.grid.scratch(source)}/source.dat"
            target = f"{self.grid.scratch(COMPUTE)}/by-hand-{source}.dat"
            _ssh(sites, source, f"scp -B -q {source_file} {COMPUTE}:{target}.part")
            _ssh(sites, COMPUTE, f"mv {target}.part {target}")

    return Beside


@contextlib.contextmanager
def _sites(directory: Path) -> Iterator[Sites]:
    clients = SshClients(directory)
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
