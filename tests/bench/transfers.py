"""Gather's parallel copies against the same copies made by hand, and what a run costs beside its stages.

Real OpenSSH servers; the stage's seconds are those of the report. By hand is scp at the sources, started over
connections that are open already, to a new name that then takes the file's, without any check.
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

from monitor.testbed.middleware.openssh import Clients, Server, sshd
from probes.base import in_parallel
from reporters import run
from reporters.config import Assignment
from reporters.report import Report
from tests.bench.base import Result, seconds

SOURCES = ("anl", "iu", "ornl", "tacc", "purdue")
COMPUTE, DESTINATION = "ncsa", "sdsc"
FILE_BYTES = 100_000_000
RUNS = 7


def measure() -> list[Result]:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, _sites(Path(directory)) as sites:
        compared = list(_compared(sites))
    return [_copies(compared), _overhead([one.report for one in compared])]


@dataclass(frozen=True)
class Sites:
    clients: Clients
    servers: dict[str, Server]


@dataclass(frozen=True)
class Compared:
    """One run of Gather; *by_hand_seconds* is the mean of the same copies by hand just before and after."""

    report: Report
    by_hand_seconds: float

    @property
    def ours_seconds(self) -> float:
        (stage,) = (stage for stage in self.report.stages if stage.name == "transfer_data")
        return stage.seconds


def _compared(sites: Sites) -> Iterator[Compared]:
    before_seconds = _by_hand(sites)
    for number in range(RUNS):
        report = _gather(sites, number)
        after_seconds = _by_hand(sites)
        yield Compared(report, (before_seconds + after_seconds) / 2)
        before_seconds = after_seconds


def _copies(compared: list[Compared]) -> Result:
    rate = FILE_BYTES * len(SOURCES) / 1e6
    return Result(
        name="Gather's copies / the same by hand",
        ratio=statistics.median(one.by_hand_seconds / one.ours_seconds for one in compared),
        target=0.95,
        better="higher",
        figures={
            "ours, MB/s": rate / statistics.median(one.ours_seconds for one in compared),
            "by hand, MB/s": rate / statistics.median(one.by_hand_seconds for one in compared),
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


def _gather(sites: Sites, number: int) -> Report:
    report = run.run(
        Assignment(
            series="bench",
            slot=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
            reporter="home",
            probe="gather",
            bindings={"sources": SOURCES, "compute": [COMPUTE], "destination": [DESTINATION]},
            resources={name: sites.clients.resource(server) for name, server in sites.servers.items()},
            parameters={"file_bytes": FILE_BYTES, "result_bytes": FILE_BYTES},
        )
    )
    if report.outcome != "passed":
        raise AssertionError(f"Gather {report.outcome}: {report.reason}")
    return report


def _by_hand(sites: Sites) -> float:
    """Of files that are new, as Gather's are: the disk has as much to write meanwhile."""
    in_parallel(lambda source: _make_file(sites, source), SOURCES)
    target = sites.servers[COMPUTE].scratch

    def copy(source: str) -> None:
        file = f"{target}/{source}"
        _ssh(sites, source, f"scp -B -q {sites.servers[source].scratch}/file {COMPUTE}:{file}.part")
        _ssh(sites, COMPUTE, f"mv {file}.part {file}")

    took_seconds = seconds(lambda: in_parallel(copy, SOURCES))
    for source in SOURCES:
        (target / source).unlink()
    return took_seconds


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


def _make_file(sites: Sites, source: str) -> None:
    file = f"{sites.servers[source].scratch}/file"
    _ssh(
        sites,
        source,
        f"rm -f {file}; head -c {FILE_BYTES} /dev/urandom > {file}; sha256sum {file} > {file}.sum",
    )


def _ssh(sites: Sites, name: str, command: str, *options: str) -> None:
    """Over the connection that is open."""
    shared = ["-F", str(sites.clients.config_file), "-S", str(sites.clients.directory / f"{name}.master")]
    subprocess.run(["ssh", *shared, *options, name, command], check=True, stderr=subprocess.DEVNULL)
