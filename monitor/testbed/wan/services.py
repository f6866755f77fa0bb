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
from monitor.testbed.wan import cluster
from monitor.testbed.wan.network import WideAreaNetwork
from monitor.testbed.wan.starting import all_entered
from reporters import process
from reporters.complaints import tail
from reporters.config import Resource

RESOURCE_SUFFIX = "-wan"  # a site's resource on the wide-area test-bed is another than on the local grid
_SSH_PORT = 22
_GRIDFTP_PORT = 2811
_USUAL_PATH = openssh.Options.path
_CLUSTER_SECONDS = 60.0


@dataclass(frozen=True)
class Services:
    """What is to run: *transfer* is "ssh" or "gridftp"; *batch*, at the site *compute*, "slurm" or "fork"."""

    transfer: str
    batch: str
    compute: str


@contextlib.contextmanager
def serving(directory: Path, wan: WideAreaNetwork, services: Services) -> Iterator[dict[str, Resource]]:
    """Run the servers of all sites until the context ends; the sites' resources.

    Raises:
        NotServing, TestbedError, MissingProgram: a server cannot be started.
    """
    clients = openssh.Clients(directory / "ssh")
    (directory / "ssh_config").symlink_to(clients.config_file)
    programs = directory / "slurm" / cluster.PROGRAMS
    with contextlib.ExitStack() as last:
        logins = [
            _sshd(clients, wan, name, programs if _has_cluster(services, name) else None)
            for name in wan.sites
        ]
        servers = all_entered(last, logins)
        transfers = last.enter_context(_transfers(directory / "gridftp", wan, services))
        if services.batch == "slurm":
            last.enter_context(_cluster(directory / "slurm", wan, services.compute))
        batch = {name: _batch(services, name) for name in wan.sites}
        yield {
            server.name: _resource(clients, server, transfers[server.name], batch[server.name])
            for server in servers
        }


def _has_cluster(services: Services, name: str) -> bool:
    return services.batch == "slurm" and services.compute == name


def _sshd(
    clients: openssh.Clients, wan: WideAreaNetwork, name: str, programs: Path | None
) -> contextlib.AbstractContextManager[openssh.Server]:
    path = f"{programs}:{_USUAL_PATH}" if programs else _USUAL_PATH
    options = openssh.Options(
        address=wan.addresses[name], port=_SSH_PORT, prefix=wan.sites[name].prefix, path=path
    )
    return openssh.sshd(name, clients, options)


@contextlib.contextmanager
def _transfers(
    directory: Path, wan: WideAreaNetwork, services: Services
) -> Iterator[dict[str, Mapping[str, Any]]]:
    """The transfer of every site's resource."""
    if services.transfer == "ssh":
        yield {name: {"kind": "ssh", "host": name} for name in wan.sites}
        return
    security = Security.create(directory)
    sites = [
        gridftp.Site(name, wan.addresses[name], directory / name, wan.sites[name].prefix)
        for name in wan.sites
    ]
    with contextlib.ExitStack() as last:
        starting = [gridftp.server(security, site, "-port", str(_GRIDFTP_PORT)) for site in sites]
        servers = all_entered(last, starting)
        yield {server.site.name: _gridftp(security, server) for server in servers}


def _gridftp(security: Security, server: gridftp.Server) -> Mapping[str, Any]:
    return {"kind": "gridftp", "host": server.site.address, "port": server.port}


@contextlib.contextmanager
def _cluster(directory: Path, wan: WideAreaNetwork, site: str) -> Iterator[None]:
    argv = [sys.executable, "-m", "monitor.testbed.wan.cluster", str(directory), site]
    with process.start([*wan.sites[site].prefix, *argv], cwd=str(env.ROOT)) as running:
        if not running.wait_for_output(lambda text: "\n" in text, _CLUSTER_SECONDS):
            done = running.poll()
            said = tail(done.stderr).strip() if done else "it was not ready in time"
            raise NotServing(f"no Slurm at {site}: {said}")
        yield


def _batch(services: Services, name: str) -> Mapping[str, Any]:
    return {"kind": "slurm"} if _has_cluster(services, name) else {"kind": "fork"}


def _resource(
    clients: openssh.Clients,
    server: openssh.Server,
    transfer: Mapping[str, Any],
    batch: Mapping[str, Any],
) -> Resource:
    resource = clients.resource(server)
    name = f"{server.name}{RESOURCE_SUFFIX}"
    return dataclasses.replace(resource, name=name, transfer=transfer, batch=batch)
