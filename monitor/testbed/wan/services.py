"""The servers of every site, and what a reporter needs to use them."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor import env
from monitor.testbed.errors import NotServing
from monitor.testbed.middleware import gridftp, openssh
from monitor.testbed.middleware.gsi import Security
from monitor.testbed.wan import cluster, network
from monitor.testbed.wan.enter_contexts import all_entered
from monitor.testbed.wan.network import WideAreaNetwork
from reporters import process
from reporters.config import ResourceConfig
from reporters.error_lines import tail

RESOURCE_SUFFIX = "-wan"  # a site's resource on the wide-area test-bed is another than on the local grid
_SSH_PORT = 22
_GRIDFTP_PORT = 2811
_USUAL_PATH = openssh.SshdOptions.path
_CLUSTER_SECONDS = 60.0
_PROXY = "proxy"


@dataclass(frozen=True)
class Services:
    """What is to run: *transfer* is "ssh" or "gridftp"; *batch*, at the site *compute*, "slurm" or "fork"."""

    transfer: str
    batch: str
    compute: str


@dataclass(frozen=True)
class Serving:
    """Sites that serve: their resources, and what their users need to stay users."""

    resources: dict[str, ResourceConfig]
    security: Security | None

    def renew(self) -> None:
        """Give the reporter a new proxy, where there are any."""
        if self.security is not None:
            self.security.proxy("renewed").replace(self.security.directory / _PROXY)


@contextlib.contextmanager
def serving(directory: Path, wan: WideAreaNetwork, services: Services) -> Iterator[Serving]:
    """Run the servers of all sites until the context ends.

    Raises:
        NotServing, TestbedError, MissingProgram: a server cannot be started.
    """
    clients = openssh.SshClients(directory / "ssh")
    (directory / "ssh_config").symlink_to(clients.config_file)
    security = Security.create(directory / "gridftp") if services.transfer == "gridftp" else None
    programs = directory / "slurm" / cluster.PROGRAMS
    with contextlib.ExitStack() as last:
        paths = [programs if _has_cluster(services, name) else None for name in wan.sites]
        logins = [_sshd(clients, wan, name, path) for name, path in zip(wan.sites, paths, strict=True)]
        servers = all_entered(last, logins)
        transfers = last.enter_context(_gridftp(wan, security)) if security else _ssh(wan)
        if services.batch == "slurm":
            last.enter_context(_cluster(directory / "slurm", wan, services.compute))
        resources = {
            server.name: _resource(
                clients, server, transfers[server.name], batch=_batch(services, server.name)
            )
            for server in servers
        }
        yield Serving(resources, security)


def _has_cluster(services: Services, name: str) -> bool:
    return services.batch == "slurm" and services.compute == name


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
    """A GridFTP server at every site; how the reporter reaches each."""
    proxy = security.proxy(_PROXY)
    sites = [
        gridftp.GridFtpSite(
            name, wan.addresses[name], security.directory / name, wan.sites[name].prefix, _GRIDFTP_PORT
        )
        for name in wan.sites
    ]
    with contextlib.ExitStack() as last:
        servers = all_entered(last, [gridftp.server(security, site) for site in sites])
        yield {server.site.name: server.transfer(proxy) for server in servers}


@contextlib.contextmanager
def _cluster(directory: Path, wan: WideAreaNetwork, site: str) -> Iterator[None]:
    # Whoever enters a mount namespace begins in its root directory.
    python = {**network.environment(directory.parent), "PYTHONPATH": str(env.ROOT)}
    argv = [sys.executable, "-m", "monitor.testbed.wan.cluster", str(directory), site]
    with process.start([*wan.sites[site].prefix, *argv], env=python) as running:
        if not running.wait_for_output(lambda text: "\n" in text, _CLUSTER_SECONDS):
            done = running.poll()
            said = tail(done.stderr).strip() if done else "it was not ready in time"
            raise NotServing(f"no Slurm at {site}: {said}")
        yield


def _batch(services: Services, name: str) -> Mapping[str, Any]:
    return {"kind": "slurm"} if _has_cluster(services, name) else {"kind": "fork"}


def _resource(
    clients: openssh.SshClients,
    server: openssh.SshServer,
    transfer: Mapping[str, Any],
    batch: Mapping[str, Any],
) -> ResourceConfig:
    resource = clients.resource(server)
    name = f"{server.name}{RESOURCE_SUFFIX}"
    return dataclasses.replace(resource, name=name, transfer=transfer, batch=batch)
