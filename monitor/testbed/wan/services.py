"""Run the servers of all sites, and describe the resources with which a reporter uses these servers."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.core import env
from monitor.testbed.errors import NotServing
from monitor.testbed.middleware import gridftp, openssh
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.wan import cluster, network
from monitor.testbed.wan.enter_contexts import enter_all
from monitor.testbed.wan.network import WideAreaNetwork
from reporters import process
from reporters.config import ResourceConfig
from reporters.error_lines import tail

RESOURCE_SUFFIX = "-wan"  # resources differ from those of the local grid
_SSH_PORT = 22
_GRIDFTP_PORT = 2811
_USUAL_PATH = openssh.SshdOptions.path
_CLUSTER_SECONDS = 120.0
_PROXY = "proxy"


@dataclass(frozen=True)
class ServerKinds:
    """The kinds of servers.

    Attributes:
        transfer: "ssh" or "gridftp".
        batch: "slurm" or "fork".
        compute: name of the site whose jobs ``batch`` runs.
    """

    transfer: str
    batch: str
    compute: str


@dataclass(frozen=True)
class RunningServers:
    """The resources of all running servers, and the security of GridFTP (None without GridFTP)."""

    resources: dict[str, ResourceConfig]
    security: Security | None

    def renew(self) -> None:
        """Renew the reporter's proxy if GridFTP is used."""
        if self.security is not None:
            self.security.proxy("renewed").replace(self.security.directory / _PROXY)


@contextlib.contextmanager
def run_servers(directory: Path, wan: WideAreaNetwork, kinds: ServerKinds) -> Iterator[RunningServers]:
    """Run the servers of all sites until the context ends.

    Raises:
        NotServing, TestbedError, MissingProgram: a server cannot be started.
    """
    clients = openssh.SshClients(directory / "ssh")
    (directory / "ssh_config").symlink_to(clients.config_file)
    security = Security.create(directory / "gridftp") if kinds.transfer == "gridftp" else None
    programs = directory / "slurm" / cluster.PROGRAMS
    with contextlib.ExitStack() as stack:
        paths = [programs if _has_cluster(kinds, name) else None for name in wan.sites]
        logins = [_sshd(clients, wan, name, path) for name, path in zip(wan.sites, paths, strict=True)]
        servers = enter_all(stack, logins)
        transfers = stack.enter_context(_gridftp(wan, security)) if security else _ssh(wan)
        if kinds.batch == "slurm":
            stack.enter_context(_cluster(directory / "slurm", wan, kinds.compute))
        resources = {
            server.name: _resource(clients, server, transfers[server.name], batch=_batch(kinds, server.name))
            for server in servers
        }
        yield RunningServers(resources, security)


def _has_cluster(kinds: ServerKinds, name: str) -> bool:
    return kinds.batch == "slurm" and kinds.compute == name


def _sshd(
    clients: openssh.SshClients, wan: WideAreaNetwork, name: str, programs: Path | None
) -> contextlib.AbstractContextManager[openssh.SshServer]:
    path = f"{programs}:{_USUAL_PATH}" if programs else _USUAL_PATH
    options = openssh.SshdOptions(
        address=wan.addresses[name], port=_SSH_PORT, prefix=wan.sites[name].prefix, path=path
    )
    return openssh.sshd(name, clients, options)


def _ssh(wan: WideAreaNetwork) -> dict[str, Mapping[str, Any]]:
    return {name: {"kind": "ssh", "host": name} for name in wan.sites}


@contextlib.contextmanager
def _gridftp(wan: WideAreaNetwork, security: Security) -> Iterator[dict[str, Mapping[str, Any]]]:
    """Run a GridFTP server at every site; yield the transfer options of the resources, by site."""
    proxy = security.proxy(_PROXY)
    sites = [
        gridftp.GridFtpSite(
            name, wan.addresses[name], security.directory / name, wan.sites[name].prefix, _GRIDFTP_PORT
        )
        for name in wan.sites
    ]
    with contextlib.ExitStack() as stack:
        servers = enter_all(stack, [gridftp.server(security, site) for site in sites])
        yield {server.site.name: server.transfer(proxy) for server in servers}


@contextlib.contextmanager
def _cluster(directory: Path, wan: WideAreaNetwork, site: str) -> Iterator[None]:
    # nsenter starts programs in the root directory.
    python = {**network.environment(directory.parent), "PYTHONPATH": str(env.ROOT)}
    argv = [sys.executable, "-m", "monitor.testbed.wan.cluster", str(directory), site]
    with process.start([*wan.sites[site].prefix, *argv], env=python) as running:
        if not running.wait_for_output(lambda text: "\n" in text, _CLUSTER_SECONDS):
            done = running.poll()
            reason = tail(done.stderr).strip() if done else f"not up after {_CLUSTER_SECONDS:g} s"
            raise NotServing(f"cannot run Slurm at {site}: {reason}")
        yield


def _batch(kinds: ServerKinds, name: str) -> Mapping[str, Any]:
    return {"kind": "slurm"} if _has_cluster(kinds, name) else {"kind": "fork"}


def _resource(
    clients: openssh.SshClients,
    server: openssh.SshServer,
    transfer: Mapping[str, Any],
    batch: Mapping[str, Any],
) -> ResourceConfig:
    resource = clients.resource(server)
    name = f"{server.name}{RESOURCE_SUFFIX}"
    return dataclasses.replace(resource, name=name, transfer=transfer, batch=batch)
