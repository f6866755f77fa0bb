"""Start, restart and end of a grid, and the processes and files that it leaves."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from monitor.testbed.errors import AlreadyRunning, DamagedState
from monitor.testbed.sites import GridDescription, LocalGridOptions, load_description, running_sites
from monitor.testbed.sites.layout import site_names
from monitor.testbed.sites.processes import pids_with_variable
from tests.monitor.testbed.sites.local_grid import DEADLINE_SECONDS
from tests.waiting import eventually


def log_in(grid: GridDescription, site: str) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(grid.ssh_config), "-o", "BatchMode=yes", site, "echo $SITE_NAME"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)


def test_the_description_exists_while_the_sites_listen(tmp_path: Path) -> None:
    with running_sites(tmp_path, 2) as grid:
        assert load_description(tmp_path) == grid
        assert (grid.sites, grid.compute, grid.destination) == (("anl", "iu"), "anl", "iu")
        assert log_in(grid, "iu").stdout == "iu\n"
    assert load_description(tmp_path) is None


def test_a_resource_describes_how_to_reach_its_site(tmp_path: Path) -> None:
    with running_sites(tmp_path) as grid:
        resource = grid.resources["ncsa"]
        assert resource.shell == {"kind": "ssh", "host": "ncsa", "config_file": str(grid.ssh_config)}
        assert resource.transfer == {"kind": "ssh", "host": "ncsa"}
        assert resource.batch == {"kind": "fork", "launcher": ["batch-start"]}
        assert Path(resource.scratch).is_dir()
        assert (grid.compute, grid.destination) == ("ncsa", "sdsc")
        assert grid.sources == ("anl", "iu", "ornl", "tacc", "purdue")


def test_a_restart_keeps_addresses_keys_passwords_and_the_epoch_of_the_weather(tmp_path: Path) -> None:
    kept = ("known_hosts", "reporter_key", "ssh_config", "state.json", "sites/anl/key")
    with running_sites(tmp_path, 2) as first:
        before = {name: (tmp_path / name).read_bytes() for name in kept}
    with running_sites(tmp_path, 2) as second:
        assert log_in(second, "anl").stdout == "anl\n"
    assert {name: (tmp_path / name).read_bytes() for name in kept} == before
    assert second.epoch == first.epoch


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"port": 0}', '{"port": "x", "epoch": "", "passwords": {}}']
)
def test_an_unreadable_state_is_replaced_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "state.json").write_text(text)
    with caplog.at_level(logging.WARNING), running_sites(tmp_path, 1) as grid:
        assert log_in(grid, "anl").returncode == 0
    assert "cannot parse" in caplog.text


def test_a_port_in_use_is_replaced(tmp_path: Path) -> None:
    with running_sites(tmp_path, 1):
        port = json.loads((tmp_path / "state.json").read_text())["port"]
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.11", port))
        other.listen()
        with running_sites(tmp_path, 1) as grid:
            assert log_in(grid, "anl").stdout == "anl\n"
            assert json.loads((tmp_path / "state.json").read_text())["port"] != port


def test_the_message_about_a_damaged_key_names_its_file(tmp_path: Path) -> None:
    with running_sites(tmp_path, 1):
        pass
    (tmp_path / "sites/anl/host_key").write_text("no key")
    with pytest.raises(DamagedState, match="sites/anl/host_key"), running_sites(tmp_path, 1):
        pass


def test_one_directory_serves_one_grid_at_a_time(tmp_path: Path) -> None:
    with running_sites(tmp_path, 1) as grid:
        with pytest.raises(AlreadyRunning, match="are up already"), running_sites(tmp_path, 1):
            pass
        assert log_in(grid, "anl").returncode == 0


def test_two_grids_do_not_disturb_each_other(tmp_path: Path) -> None:
    with running_sites(tmp_path / "one", 1) as first, running_sites(tmp_path / "two", 1) as second:
        assert log_in(first, "anl").returncode == 0
        assert log_in(second, "anl").returncode == 0


def test_a_directory_may_have_an_awkward_name(tmp_path: Path) -> None:
    with running_sites(tmp_path / "a b %h 'c'", 2) as grid:
        assert log_in(grid, "anl").stdout == "anl\n"
        argv = ["ssh", "-F", str(grid.ssh_config), "anl", "echo hello > x && scp -q x iu:y && ssh iu cat y"]
        assert (
            subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False).stdout
            == "hello\n"
        )


def test_processes_left_by_a_killed_grid_are_killed_at_the_next_start(tmp_path: Path) -> None:
    mark = f"SITE_GRID={tmp_path.resolve()}"
    environment = {**os.environ, "SITE_GRID": str(tmp_path.resolve())}
    with subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True) as orphan:
        try:
            # Popen returns when the program is loaded, which is before the kernel shows its environment.
            assert eventually(lambda: orphan.pid in pids_with_variable(mark))
            with running_sites(tmp_path, 1):
                assert orphan.wait(timeout=DEADLINE_SECONDS) == -signal.SIGKILL
        finally:
            orphan.kill()


def test_processes_left_by_sessions_end_with_the_grid(tmp_path: Path) -> None:
    mark = f"SITE_GRID={tmp_path.resolve()}"
    with running_sites(tmp_path, 1) as grid:
        command = "setsid sleep 600 </dev/null >/dev/null 2>&1 & exit 0"
        subprocess.run(
            ["ssh", "-F", str(grid.ssh_config), "anl", command], timeout=DEADLINE_SECONDS, check=True
        )
        assert eventually(lambda: len(pids_with_variable(mark)) == 1)
    assert eventually(lambda: pids_with_variable(mark) == set())


@pytest.mark.parametrize("count", [0, 201])
def test_a_grid_has_one_site_at_least_and_one_per_address_at_most(tmp_path: Path, count: int) -> None:
    with pytest.raises(ValueError, match="1 to 200 sites"), running_sites(tmp_path, count):
        pass


def test_sites_have_names_in_a_fixed_order() -> None:
    names = site_names(15)
    assert names[:8] == ("anl", "iu", "ornl", "tacc", "purdue", "ncsa", "sdsc", "utep")
    assert names[13:] == ("site14", "site15")


def test_an_unknown_compute_site_is_refused(tmp_path: Path) -> None:
    options = LocalGridOptions(sites=2, compute="nowhere")
    with pytest.raises(ValueError, match="no site 'nowhere'"), running_sites(tmp_path, options=options):
        pass
