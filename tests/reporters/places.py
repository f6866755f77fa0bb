"""Two resources for every kind of shell and transfer.

A new kind that needs a server has a maker in ``two_places``; others connect directories of this host.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from monitor.testbed.middleware import gram, gridftp, openssh, xrootd
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.middleware.programs import locate
from reporters import resolve, transfers
from reporters.base import End, ResourceShell
from reporters.config import ResourceConfig
from tests.reporters.needs import needs
from tests.reporters.run_security import client_path, copied_proxy, copied_security, short_proxy
from tests.reporters.ssh_sites import SshSites

# Printed by every login: it must not appear in the output of programs.
GREETING = "echo 'Welcome!'; echo 'listening 1'; echo 'quota: 91 % used' >&2"
LABEL = "gather-main@2026-03-01T12:07:00.000000Z"


@dataclass
class Place:
    """A resource, its connected shell, and a directory that is first on its PATH."""

    resource: ResourceConfig
    shell: ResourceShell
    programs: Path

    @property
    def scratch(self) -> Path:
        return Path(self.resource.scratch)

    @property
    def end(self) -> End:
        return End(self.resource, self.shell)

    def install(self, program: str, script: str) -> None:
        install(self.programs, program, script)


@contextlib.contextmanager
def two_places(kind: str) -> Iterator[tuple[Place, Place]]:
    """Yield two places with shell or transfer *kind*; "ssh-rsync" is ssh with another program."""
    makers: dict[str, Callable[[], contextlib.AbstractContextManager[tuple[Place, Place]]]] = {
        "local": _local,
        "ssh": _ssh,
        "ssh-rsync": partial(_openssh, program="rsync"),
        "ssh-sftp": partial(_openssh, program="sftp"),
        "gridftp": _gridftp,
        "gram": _gram,
        "xrootd": _xrootd,
        "http": _http,
    }
    with makers.get(kind, partial(_at_this_host, kind))() as places, contextlib.ExitStack() as last:
        for place in places:
            last.callback(place.shell.close)
            place.shell.connect(timeout_seconds=60)
        yield places


def install(directory: Path, program: str, script: str) -> None:
    file = directory / program
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@contextlib.contextmanager
def _local() -> Iterator[tuple[Place, Place]]:
    with tempfile.TemporaryDirectory() as root:
        yield _local_place("one", Path(root)), _local_place("two", Path(root))


@contextlib.contextmanager
def _at_this_host(kind: str) -> Iterator[tuple[Place, Place]]:
    """Two directories, with the shell or transfer *kind* without options."""
    way: dict[str, Any] = {"transfer" if kind in transfers.names() else "shell": {"kind": kind}}
    with tempfile.TemporaryDirectory() as root:
        yield _local_place("one", Path(root), **way), _local_place("two", Path(root), **way)


def _local_place(
    name: str, root: Path, transfer: Mapping[str, Any] | None = None, shell: Mapping[str, Any] | None = None
) -> Place:
    for directory in ("bin", "scratch"):
        (root / name / directory).mkdir(parents=True)
    resource = ResourceConfig(
        name,
        name,
        str(root / name / "scratch"),
        shell=shell or {"kind": "local", "path": _path(root / name)},
        transfer=transfer or {"kind": "local"},
    )
    return Place(resource, resolve.shell_of(resource, LABEL), root / name / "bin")


def _path(site: Path) -> str:
    return f"{site / 'bin'}:/usr/local/bin:/usr/bin:/bin"


@contextlib.contextmanager
def _ssh() -> Iterator[tuple[Place, Place]]:
    with SshSites("one", "two") as sites:
        for site in sites.sites.values():
            site.start_up = GREETING
        one, two = (
            Place(resource, resolve.shell_of(resource, LABEL), sites.sites[resource.name].root / "bin")
            for resource in (sites.resource("one"), sites.resource("two"))
        )
        yield one, two


@contextlib.contextmanager
def _openssh(program: str) -> Iterator[tuple[Place, Place]]:
    """Real servers; with sftp, the second place has a data mover without a shell."""
    needs("sshd", program)
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, contextlib.ExitStack() as running:
        clients = openssh.SshClients(Path(directory))
        one, two = (running.enter_context(openssh.sshd(name, clients)) for name in ("one", "two"))
        mover = two
        if program == "sftp":
            mover = running.enter_context(openssh.sshd("mover", clients, openssh.SshdOptions(sftp_only=True)))
        resources = (
            clients.resource(one, program=program),
            clients.resource(two, program=program, host=mover.name),
        )
        yield (
            Place(resources[0], resolve.shell_of(resources[0], LABEL), one.root / "bin"),
            Place(resources[1], resolve.shell_of(resources[1], LABEL), two.root / "bin"),
        )


@contextlib.contextmanager
def _gridftp() -> Iterator[tuple[Place, Place]]:
    """Local shells, and a GridFTP server for the files of each."""
    needs("globus-gridftp-server", "globus-url-copy", "grid-proxy-init", "openssl")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        root = Path(directory)
        security = copied_security(root / "security")
        path = f"{root / 'one' / 'bin'}:{client_path(security)}"
        names = ("one", "two")
        sites = [gridftp.GridFtpSite(name, f"127.0.0.{11 + n}", root / name) for n, name in enumerate(names)]
        with short_proxy(security) as proxy, gridftp.servers(security, sites) as servers:
            one, two = (
                _local_place(name, root, {**servers[name].transfer(proxy), "path": path}) for name in names
            )
            yield one, two


@contextlib.contextmanager
def _xrootd() -> Iterator[tuple[Place, Place]]:
    """Local shells, and an XRootD server for the files of each."""
    needs("xrootd", "xrdcp", "grid-proxy-init", "openssl")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        root = Path(directory)
        security = copied_security(root / "security")
        path = f"{root / 'one' / 'bin'}:{client_path(security)}"
        with short_proxy(security) as proxy, xrootd_servers(root, security) as servers:
            one, two = (
                _local_place(name, root, {**server.transfer(proxy), "path": path})
                for name, server in servers.items()
            )
            yield one, two


@contextlib.contextmanager
def _http() -> Iterator[tuple[Place, Place]]:
    """Local shells, and a WebDAV server for the files of each, with a macaroon."""
    needs("xrootd", "grid-proxy-init", "openssl")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        root = Path(directory)
        security = copied_security(root / "security")
        proxy = copied_proxy(security)
        with xrootd_servers(root, security) as servers:
            one, two = (
                _local_place(
                    name, root, server.https_transfer(private(root / f"{name}.token", server.macaroon(proxy)))
                )
                for name, server in servers.items()
            )
            yield one, two


@contextlib.contextmanager
def xrootd_servers(root: Path, security: Security) -> Iterator[dict[str, xrootd.XrootdServer]]:
    """Run servers for the places "one" and "two" in *root*."""
    sites = [xrootd.XrootdSite(name, root / f"{name}-server", root / name) for name in ("one", "two")]
    with xrootd.servers(security, sites) as servers:
        yield servers


def private(file: Path, text: str) -> Path:
    """Write a file that only its owner can read."""
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")
    return file


@contextlib.contextmanager
def _gram() -> Iterator[tuple[Place, Place]]:
    """Two directories behind one gatekeeper."""
    needs(*gram.PROGRAMS)
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, contextlib.ExitStack() as running:
        root = Path(directory)
        security = copied_security(root / "security")
        path = _path(root / "one")
        site = running.enter_context(gram.gatekeeper(security, "127.0.0.31", root / "gram", path=path))
        clients = root / "clients"
        clients.mkdir()
        install(clients, "globusrun", f'{GREETING}; exec {locate("globusrun")} "$@"')
        shell = {**site.shell(copied_proxy(security)), "path": f"{clients}:{os.environ['PATH']}"}
        one, two = (_local_place(name, root, shell=shell) for name in ("one", "two"))
        yield one, two
