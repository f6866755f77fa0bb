"""Ways to use one grid: its SSH sites, each way with another transfer and batch system.

The sites are four of those of the local grid; a way runs real middleware on the same directories.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from monitor.testbed.middleware import gridftp, slurm
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.sites import GridDescription, LocalGridOptions, running_sites
from monitor.testbed.weather.conditions import Conditions, SiteFault
from reporters import run as reporter
from reporters.config import Assignment, ResourceConfig
from reporters.report import Report
from tests.probes.run_clock import RunClock
from tests.probes.runs import LIMIT_SECONDS
from tests.reporters.run_security import client_path, copied_security, short_proxy

SOURCES, COMPUTE, DESTINATION = ("anl", "iu"), "ornl", "tacc"
SITES = (*SOURCES, COMPUTE, DESTINATION)
BINDINGS = {
    "gather": {"sources": list(SOURCES), "compute": [COMPUTE], "destination": [DESTINATION]},
    "circle": {"ring": list(SITES)},
    "preco": {"source": [SOURCES[0]], "compute": [COMPUTE], "destination": [DESTINATION]},
}
NEEDED = {
    "ssh+fork": (),
    "ssh+slurm": ("slurmctld", "munged"),
    "gridftp+fork": ("globus-gridftp-server", "globus-url-copy", "grid-proxy-init", "openssl"),
}
SMALL = {
    "gather": {"file_bytes": 200_000, "result_bytes": 400_000},
    "circle": {"file_bytes": 200_000},
    "preco": {"projections": 41, "size": 32},
}


@dataclass
class FaultWeather:
    """Weather of the local grid without disturbances, except for *fault*; then mechanisms take *seconds*."""

    fault: SiteFault | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def at(self, label: str | None, now: datetime) -> Conditions | None:
        if self.fault is None:
            return None
        return Conditions(
            index=0, seconds=self.seconds, slowest_site={}, others_fraction=1.0, fault=self.fault
        )


@dataclass
class Way:
    """One way to use the grid. *cluster*, *servers* and *security* are set if the way has them."""

    name: str
    description: GridDescription
    weather: FaultWeather
    resources: dict[str, ResourceConfig]
    cluster: slurm.SlurmCluster | None = None
    servers: Mapping[str, gridftp.GridFtpServer] = field(default_factory=dict)
    security: Security | None = None
    _slots: Iterator[int] = field(default_factory=itertools.count)

    def run(
        self,
        probe: str,
        *,
        at_stage: Mapping[str, Callable[[], object]] | None = None,
        limit_seconds: float = LIMIT_SECONDS,
        seconds_left_at: Mapping[str, float] | None = None,
        resources: Mapping[str, ResourceConfig] | None = None,
        expected_seconds: Mapping[str, float] | None = None,
        **parameters: Any,
    ) -> Report:
        """Run *probe*. At the start of a stage, call *at_stage* and shorten the time to *seconds_left_at*."""
        actions, seconds_left = at_stage or {}, seconds_left_at or {}
        assignment = self.assignment(probe, limit_seconds=limit_seconds, **parameters)
        assignment = replace(
            assignment,
            resources={**self.resources, **(resources or {})},
            expected_seconds=expected_seconds or {},
        )
        clock = RunClock(limit_seconds)

        def on_stage(stage: str) -> None:
            if stage in actions:
                actions[stage]()
            if stage in seconds_left:
                clock.leave(seconds_left[stage])

        return reporter.run(assignment, on_stage=on_stage, tools=reporter.RunnerTools(monotonic=clock))

    def assignment(
        self, probe: str, *, limit_seconds: float = LIMIT_SECONDS, **parameters: Any
    ) -> Assignment:
        """Return the assignment of the next run of *probe*, with small files unless *parameters* differ."""
        return Assignment(
            series=self.series(probe),
            slot=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=next(self._slots)),
            reporter="home",
            probe=probe,
            bindings=BINDINGS[probe],
            resources=self.resources,
            parameters={**SMALL[probe], **parameters},
            limit_seconds=limit_seconds,
        )

    def series(self, probe: str) -> str:
        return f"{probe}-{self.name.replace('+', '-')}"

    def scratch(self, site: str) -> Path:
        return Path(self.resources[site].scratch)

    def files(self) -> list[Path]:
        """Return every file in a scratch directory of any site."""
        return [file for site in SITES for file in self.scratch(site).rglob("*") if not file.is_dir()]

    def processes(self) -> list[int]:
        """Return the processes of this way's runs, at the sites and at the reporter."""
        labels = [f"LC_GRIDCAST_RUN={self.series(probe)}@".encode() for probe in BINDINGS]
        return [pid for pid in _processes() if any(label in _environment(pid) for label in labels)]

    def jobs(self) -> list[str]:
        return self.cluster.jobs() if self.cluster is not None else []

    def is_idle(self) -> bool:
        """Return whether no job and no process of this way's runs exists."""
        return self.jobs() == [] and self.processes() == []

    def install(self, site: str, program: str, script: str) -> Callable[[], None]:
        """Put a shell script before the real *program* on the PATH of *site*; return the undo function."""
        file = self.description.directory / "sites" / site / "bin" / program
        before = file.read_bytes() if file.exists() else None
        _write_program(file, f"#!/bin/sh\n{script}\n".encode())

        def undo() -> None:
            if before is None:
                file.unlink()
            else:
                _write_program(file, before)

        return undo

    def inject_fault(self, site: str, mechanism: str, kind: str) -> None:
        self.weather.fault = SiteFault(SITES.index(site), mechanism, kind)

    def clear_fault(self) -> None:
        self.weather.fault = None


@contextlib.contextmanager
def open_way(name: str) -> Iterator[Way]:
    """Start the sites and the middleware of the way called *name* until the context ends."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="way-", dir="/tmp")))
        directory.chmod(0o755)
        weather = FaultWeather()
        sites = running_sites(directory / "grid", weather=weather, options=LocalGridOptions(sites=len(SITES)))
        description = stack.enter_context(sites)
        way = Way(name, description, weather, dict(description.resources))
        if name == "ssh+slurm":
            _add_slurm(way, directory, stack)
        elif name == "gridftp+fork":
            _add_gridftp(way, directory, stack)
        yield way


def _add_slurm(way: Way, directory: Path, stack: contextlib.ExitStack) -> None:
    """Start Slurm at the compute site and put its clients on the PATH of the site's sessions."""
    way.cluster = stack.enter_context(slurm.cluster(directory / "slurm"))
    for client in way.cluster.programs.iterdir():
        (way.description.directory / "sites" / COMPUTE / "bin" / client.name).symlink_to(client)
    way.resources[COMPUTE] = replace(way.resources[COMPUTE], batch={"kind": "slurm"})


def _add_gridftp(way: Way, directory: Path, stack: contextlib.ExitStack) -> None:
    """Start a GridFTP server at every site that serves the files of the site's SSH sessions."""
    way.security = copied_security(directory / "gsi")
    proxy = str(stack.enter_context(short_proxy(way.security)))
    sites = [
        gridftp.GridFtpSite(name, f"127.0.1.{number}", directory / name)
        for number, name in enumerate(SITES, 1)
    ]
    way.servers = stack.enter_context(gridftp.servers(way.security, sites))
    for name, server in way.servers.items():
        transfer = {
            "kind": "gridftp",
            "host": server.site.address,
            "port": server.port,
            "subject": server.subject,
            "proxy_file": proxy,
            "ca_directory": str(way.security.authority.trust),
            "path": client_path(way.security),
        }
        way.resources[name] = replace(way.resources[name], transfer=transfer)


def with_proxy(way: Way, proxy: Path) -> dict[str, ResourceConfig]:
    """Return the resources of *way* with another proxy."""
    return {
        name: replace(resource, transfer={**resource.transfer, "proxy_file": str(proxy)})
        for name, resource in way.resources.items()
    }


def flip_bit(file: Path) -> None:
    """Flip one bit in the middle of a file, as a failing disk does."""
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        byte = opened.read(1)[0]
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte ^ 1]))


def only_file(directory: Path, pattern: str) -> Path:
    """Return the one file below *directory* that matches *pattern*."""
    (file,) = directory.rglob(pattern)
    return file


def _write_program(file: Path, script: bytes) -> None:
    """Replace *file* atomically: a site may be executing the old one."""
    new_file = file.with_name(f".{file.name}")
    new_file.write_bytes(script)
    new_file.chmod(new_file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    new_file.rename(file)


def _processes() -> Sequence[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
