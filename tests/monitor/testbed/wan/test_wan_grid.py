"""The wide-area test-bed as a user starts it: the command, real servers, a probe, and nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from monitor.testbed.sites import GridDescription
from monitor.testbed.sites.processes import pids_with_variable
from monitor.testbed.wan.grid import WanOptions, open_grid
from monitor.testbed.wan.namespaces import routes
from monitor.testbed.wan.network import VARIABLE
from monitor.testbed.wan.requirements import CannotRunHere, check
from reporters.config import Assignment
from reporters.report import Report
from reporters.run import run
from tests.monitor.testbed.sites.local_grid import served
from tests.monitor.testbed.wan.conftest import needs_namespaces
from tests.waiting import eventually

DEADLINE_SECONDS = 60.0


@contextmanager
def up(directory: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], GridDescription]]:
    with served(directory, "--wan", "--sites=3", "--weather=none", *options) as (process, grid):
        yield process, grid
    assert eventually(lambda: leftovers(directory) == [], within_seconds=DEADLINE_SECONDS), leftovers(
        directory
    )


def leftovers(directory: Path) -> list[str]:
    """Return the commands and pids of processes that belong to the grid in *directory*."""
    commands = [
        command
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (command := command_of(entry)) and str(directory) in command
    ]
    return [*commands, *map(str, pids_with_variable(f"{VARIABLE}={directory}"))]


def command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def gather(grid: GridDescription) -> Report:
    named = {site: resource.name for site, resource in grid.resources.items()}
    return run(
        Assignment(
            series="gather-wan",
            slot=datetime.now(UTC),
            reporter="test",
            probe="gather",
            bindings={
                "sources": [named[site] for site in grid.sources],
                "compute": [named[grid.compute]],
                "destination": [named[grid.destination]],
            },
            resources={resource.name: resource for resource in grid.resources.values()},
            parameters={"file_bytes": 100_000, "result_bytes": 200_000, "parallel": 2},
            limit_seconds=240.0,
        )
    )


@pytest.mark.grid
@pytest.mark.nightly
def test_gather_runs_over_gridftp_and_slurm_and_the_network_is_changed_by_hand(directory: Path) -> None:
    needs_namespaces(
        "sshd", "globus-gridftp-server", "globus-url-copy", "grid-proxy-init", "slurmctld", "munged"
    )
    with up(directory) as (process, grid):
        report = gather(grid)
        assert report.outcome == "passed", report.reason
        scratches = [Path(resource.scratch) for resource in grid.resources.values()]
        assert not any(path.is_file() for scratch in scratches for path in scratch.rglob("*"))
        call_command("testbed", "link", "hub", "anl", loss_percent=100.0, directory=directory)
        assert "100.000% lost" in link_report(directory, "hub > anl")
        call_command("testbed", "mend", directory=directory)
        assert "0.000% lost" in link_report(directory, "hub > anl")
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, stderr) == (0, "")
    assert "3 sites are up on an emulated wide-area network: anl, iu, ornl" in stdout


def link_report(directory: Path, link: str) -> str:
    """Return the line of ``testbed links`` about *link*."""
    from io import StringIO

    output = StringIO()
    call_command("testbed", "links", directory=directory, stdout=output)
    return next(line for line in output.getvalue().splitlines() if " ".join(line.split()).startswith(link))


@pytest.mark.grid
@pytest.mark.nightly
def test_a_killed_grid_leaves_nothing_and_restarts_on_the_same_network(directory: Path) -> None:
    needs_namespaces("sshd")
    with up(directory, "--transfer=ssh", "--batch=fork") as (process, first):
        process.kill()
        process.wait()
    addresses = [IPv4Address(resource.address) for resource in first.resources.values()]
    # The kernel removes the interface of the network some time after the last process has ended.
    assert eventually(lambda: not any(address in route for address in addresses for route in routes()))
    options = WanOptions(sites=3, transfer="ssh", batch="fork", weather=False)
    with open_grid(directory, options) as again:
        second = again.description
        argv = ["ssh", "-F", str(second.ssh_config), "iu", "hostname"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    assert done.stdout == "iu\n", done.stderr
    assert addresses == [IPv4Address(resource.address) for resource in second.resources.values()]
    assert first.epoch == second.epoch
    assert leftovers(directory) == []


def test_without_a_wide_area_grid_there_is_no_link_to_change(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no wide-area test-bed is up"):
        call_command("testbed", "link", "anl", "iu", delay_ms=1.0, directory=tmp_path)


def test_the_error_for_an_ordinary_user_names_the_missing_rights() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may start one")
    with pytest.raises(CannotRunHere, match="network namespaces need root"):
        check("gridftp", "slurm")
