"""The command ``testbed``: up, break and mend."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from monitor.testbed.sites import load_description, running_sites
from monitor.testbed.sites.processes import pids_with_variable
from tests.by_night import by_night
from tests.monitor.testbed.sites.local_grid import DEADLINE_SECONDS, served
from tests.waiting import eventually


@pytest.mark.parametrize("number", [signal.SIGTERM, by_night(signal.SIGINT)])
def test_the_command_serves_until_it_is_signalled_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    mark = f"SITE_GRID={tmp_path.resolve()}"
    with served(tmp_path, "--weather", "calm", "--seed", "3") as (process, grid):
        assert (len(grid.sites), grid.profile, grid.seed, grid.pid) == (7, "calm", 3, process.pid)
        argv = ["ssh", "-F", str(grid.ssh_config), "ncsa", "setsid sleep 600 & sleep 600"]
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as session:
            assert eventually(lambda: len(pids_with_variable(mark)) >= 3)
            process.send_signal(number)
            assert session.wait(timeout=DEADLINE_SECONDS) == 255
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        complaints = [line for line in stderr.splitlines() if "Address already in use" not in line]
        assert (process.returncode, complaints) == (0, [])  # another port is taken then
    assert "7 sites are up: anl, iu, ornl, tacc, purdue, ncsa, sdsc" in stdout
    assert pids_with_variable(mark) == set()
    assert load_description(tmp_path) is None


def test_break_breaks_a_site_and_mend_repairs_it(tmp_path: Path) -> None:
    with running_sites(tmp_path, 2) as grid:
        argv = ["ssh", "-F", str(grid.ssh_config), "iu", "dd if=/dev/zero of=x count=1 status=none"]
        call_command("testbed", "break", "iu", "disk", "full", directory=tmp_path)
        broken = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
        call_command("testbed", "mend", directory=tmp_path)
        mended = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    assert "No space left on device" in broken.stderr
    assert mended.returncode == 0


def test_break_refuses_unknown_sites_and_up_refuses_a_running_grid(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no sites are up"):
        call_command("testbed", "break", "iu", "disk", "full", directory=tmp_path)
    with running_sites(tmp_path, 2):
        with pytest.raises(CommandError, match="unknown site 'ncsa'; known are anl, iu"):
            call_command("testbed", "break", "ncsa", "disk", "full", directory=tmp_path)
        with pytest.raises(CommandError, match="are up already"):
            call_command("testbed", "up", sites=2, directory=tmp_path)


def test_without_an_ssh_client_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from monitor.testbed.errors import MissingProgram
    from monitor.testbed.sites import programs

    monkeypatch.setattr(programs, "SYSTEM_PATH", os.fspath(tmp_path))
    with pytest.raises(MissingProgram, match="'ssh'"), running_sites(tmp_path / "grid", 1):
        pass
