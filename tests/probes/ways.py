"""Ways through one grid: its SSH sites, with this transfer and that batch system.

The sites are those of the local grid, four of them; a way puts real middleware over the same directories.
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
    "gridftp+fork": ("globus-gridftp-server", "globus-url-copy", "grid-proxy-init", "openssl", "faketime"),
}
SMALL = {
    "gather": {"file_bytes": 200_000, "result_bytes": 400_000},
    "circle": {"file_bytes": 200_000},
    "preco": {"projections": 41, "size": 32},
}
LIMIT_SECONDS = 60.0


@dataclass
class Weather:
    """Fine for everybody, but for the fault that is set; then mechanisms take these *seconds*."""

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
    """A grid reached in one way. *cluster* and *servers* are there where the way has them."""

    name: str
    description: GridDescription
    weather: Weather
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
        resources: Mapping[str, ResourceConfig] | None = None,
        expected_seconds: Mapping[str, float] | None = None,
        **parameters: Any,
    ) -> Report:
        """Run *probe*; what *at_stage* has for a stage happens when the stage begins."""
        actions = at_stage or {}
        assignment = self.assignment(probe, limit_seconds=limit_seconds, **parameters)
        assignment = replace(
            assignment,
            resources={**self.resources, **(resources or {})},
            expected_seconds=expected_seconds or {},
        )

        def act(stage: str) -> None:
            actions.get(stage, lambda: None)()

        return reporter.run(assignment, on_stage=act)

    def assignment(
        self, probe: str, *, limit_seconds: float = LIMIT_SECONDS, **parameters: Any
    ) -> Assignment:
        """The next run of *probe*, with small files but for *parameters*."""
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
        """Every file that lies in a scratch directory."""
        return [file for site in SITES for file in self.scratch(site).rglob("*") if not file.is_dir()]

    def processes(self) -> list[int]:
        """The processes of this way's runs, wherever they are."""
        labels = [f"LC_GRIDCAST_RUN={self.series(probe)}@".encode() for probe in BINDINGS]
        return [pid for pid in _processes() if any(label in _environment(pid) for label in labels)]

    def jobs(self) -> list[str]:
        return self.cluster.jobs() if self.cluster is not None else []

    def is_idle(self) -> bool:
        """Whether nothing of its runs waits or works anywhere."""
        return self.jobs() == [] and self.processes() == []

    def install(self, site: str, program: str, script: str) -> Callable[[], None]:
        """Put a program before the real one on a site's PATH; what takes it away again."""
        file = self.description.directory / "sites" / site / "bin" / program
        before = file.read_bytes() if file.exists() else None
        _write_program(file, f"#!/bin/sh\n{script}\n".encode())

        def take_away() -> None:
            if before is None:
                file.unlink()
            else:
                _write_program(file, before)

        return take_away

    def break_(self, site: str, mechanism: str, kind: str) -> None:
        self.weather.fault = SiteFault(SITES.index(site), mechanism, kind)

    def mend(self) -> None:
        self.weather.fault = None


@contextlib.contextmanager
def open_way(name: str) -> Iterator[Way]:
    """The grid behind the way called *name*, until the context ends."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="way-", dir="/tmp")))
        directory.chmod(0o755)
        weather = Weather()
        sites = running_sites(directory / "grid", weather=weather, options=LocalGridOptions(sites=len(SITES)))
        description = stack.enter_context(sites)
        yield _MIDDLEWARE[name](
            Way(name, description, weather, dict(description.resources)), directory, stack
        )


def _plain(way: Way, _directory: Path, _stack: contextlib.ExitStack) -> Way:
    return way


def _slurm(way: Way, directory: Path, stack: contextlib.ExitStack) -> Way:
    """Slurm at the compute site, whose sessions find its clients on their PATH."""
    way.cluster = stack.enter_context(slurm.cluster(directory / "slurm"))
    for client in way.cluster.programs.iterdir():
        (way.description.directory / "sites" / COMPUTE / "bin" / client.name).symlink_to(client)
    way.resources[COMPUTE] = replace(way.resources[COMPUTE], batch={"kind": "slurm"})
    return way


def _gridftp(way: Way, directory: Path, stack: contextlib.ExitStack) -> Way:
    """A GridFTP server at every site, for the files that its SSH sessions see."""
    way.security = Security.create(directory / "gsi")
    sites = [
        gridftp.GridFtpSite(name, f"127.0.1.{number}", directory / name)
        for number, name in enumerate(SITES, 1)
    ]
    way.servers = stack.enter_context(gridftp.servers(way.security, sites))
    proxy = str(way.security.proxy())
    for name, server in way.servers.items():
        transfer = _gridftp_options(server, way.security, proxy)
        way.resources[name] = replace(way.resources[name], transfer=transfer)
    return way


def _gridftp_options(server: gridftp.GridFtpServer, security: Security, proxy: str) -> dict[str, Any]:
    return {
        "kind": "gridftp",
        "host": server.site.address,
        "port": server.port,
        "subject": server.subject,
        "proxy_file": proxy,
        "ca_directory": str(security.authority.trust),
    }


_MIDDLEWARE = {"ssh+fork": _plain, "ssh+slurm": _slurm, "gridftp+fork": _gridftp}


def with_proxy(way: Way, proxy: Path) -> dict[str, ResourceConfig]:
    """The way's resources with another proxy."""
    return {
        name: replace(resource, transfer={**resource.transfer, "proxy_file": str(proxy)})
        for name, resource in way.resources.items()
    }


def damage(file: Path) -> None:
    """Flip one bit in the middle of a file, as a failing disk does."""
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        byte = opened.read(1)[0]
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte ^ 1]))


def found(directory: Path, pattern: str) -> Path:
    """The one file below *directory* that *pattern* names."""
    (file,) = directory.rglob(pattern)
    return file


def _write_program(file: Path, script: bytes) -> None:
    other = file.with_name(f".{file.name}")
    other.write_bytes(script)
    other.chmod(other.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    other.rename(file)


def _processes() -> Sequence[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
