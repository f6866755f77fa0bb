"""Failures of the middleware of sites, provoked on real servers, have the signatures that they should."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from monitor.testbed.middleware import gram, gridengine
from tests.monitor.analysis.signatures.provoked.batch_servers import gridengine_cell, slurm_cluster
from tests.monitor.analysis.signatures.provoked.cases import Group, check, groups
from tests.monitor.analysis.signatures.provoked.endpoints import endpoints
from tests.monitor.analysis.signatures.provoked.grid_servers import grid_servers
from tests.monitor.analysis.signatures.provoked.ssh_servers import ssh_servers
from tests.monitor.analysis.signatures.provoked.web import web_servers
from tests.monitor.analysis.signatures.provoked.xrootd_servers import xrootd_servers
from tests.reporters.clusters import SLURM_PROGRAMS
from tests.reporters.needs import needs

Servers = Callable[[Path], AbstractContextManager[dict[str, str]]]
pytestmark = pytest.mark.nightly


def serving(servers: Servers, *programs: str) -> Iterator[dict[str, str]]:
    """Run *servers*, which need *programs*, beside ports that do not serve; yield the variables of all."""
    needs(*programs)
    with tempfile.TemporaryDirectory(dir="/tmp") as directory, contextlib.ExitStack() as running:
        root = Path(directory)
        root.chmod(0o755)
        (root / "web").mkdir()
        yield {
            **running.enter_context(endpoints()),
            **running.enter_context(web_servers(root / "web")),
            **running.enter_context(servers(root / "servers")),
        }


@pytest.fixture(scope="module")
def ssh() -> Iterator[dict[str, str]]:
    yield from serving(ssh_servers, "sshd", "rsync")


@pytest.fixture(scope="module")
def grid() -> Iterator[dict[str, str]]:
    yield from serving(grid_servers, "globus-gridftp-server", "globus-url-copy", *gram.PROGRAMS)


@pytest.fixture(scope="module")
def xrootd() -> Iterator[dict[str, str]]:
    yield from serving(xrootd_servers, "xrootd", "xrdcp", "grid-proxy-init", "openssl")


@pytest.fixture(scope="module")
def slurm() -> Iterator[dict[str, str]]:
    yield from serving(slurm_cluster, *SLURM_PROGRAMS)


@pytest.fixture(scope="module")
def cell() -> Iterator[dict[str, str]]:
    if os.geteuid() != 0:
        pytest.skip("Grid Engine needs root: it switches users")
    yield from serving(gridengine_cell, *gridengine.SERVERS, "qsub")


@pytest.mark.parametrize("group", groups("openssh", "rsync"), ids=str)
def test_failures_of_ssh_and_rsync_are_named(group: Group, ssh: dict[str, str]) -> None:
    check(group, ssh)


@pytest.mark.parametrize("group", groups("gridftp", "gsi", "gram"), ids=str)
def test_failures_of_globus_are_named(group: Group, grid: dict[str, str]) -> None:
    check(group, grid)


@pytest.mark.parametrize("group", groups("xrootd"), ids=str)
def test_failures_of_xrootd_are_named(group: Group, xrootd: dict[str, str]) -> None:
    check(group, xrootd)


@pytest.mark.parametrize("group", groups("slurm"), ids=str)
def test_failures_of_slurm_are_named(group: Group, slurm: dict[str, str]) -> None:
    check(group, slurm)


@pytest.mark.parametrize("group", groups("gridengine"), ids=str)
def test_failures_of_grid_engine_are_named(group: Group, cell: dict[str, str]) -> None:
    check(group, cell)
