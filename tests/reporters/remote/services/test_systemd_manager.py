"""The systemd user unit with a real user manager, and the agent that it starts, against a real server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.testbed.middleware.pki import Authority
from reporters.remote import identity
from reporters.remote.state_directory import StateDirectory
from reporters.report import rfc3339, run_id
from tests.reporters.needs import needs
from tests.reporters.remote.assignments import RESOURCE, assignment, enrolled, series
from tests.reporters.remote.grid_server import GridServer, grid_server
from tests.reporters.remote.services.user_manager import UserManager, user_manager
from tests.waiting import eventually


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory.create(tmp_path / "home" / "state")


@pytest.fixture
def server(tmp_path: Path, state: StateDirectory) -> Iterator[GridServer]:
    """The server of the enrolled reporter, which asks for one run of a program."""
    needs("openssl", "ssh-keygen")
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    login = series("login-ncsa", probe="login", schedule="")
    assigned = assignment(login, resources={"ncsa-login": {**RESOURCE, "scratch": str(scratch)}})
    slot = datetime.now(UTC)
    requested = {"run": str(run_id("login-ncsa", slot)), "series": "login-ncsa", "slot": rfc3339(slot)}
    requested["expires_at"] = rfc3339(slot + timedelta(minutes=10))
    authority = Authority.create(tmp_path / "authority")
    with grid_server(authority, GridServer(assignment=assigned, requests=[requested])) as server:
        ca_file = str(authority.identity.certificate)
        identity.save(state, enrolled(state, url=server.url, ca_file=ca_file))
        yield server


def reporter(manager: UserManager, pyz: Path, command: str, state: StateDirectory) -> str:
    done = manager.call(sys.executable, "-I", str(pyz), command, "--state", str(state.path))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_the_unit_runs_the_agent_from_boot_on_until_it_is_removed(
    pyz: Path, server: GridServer, state: StateDirectory, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with user_manager(home) as manager:
        installed = reporter(manager, pyz, "install", state)
        assert installed.startswith("installed: systemd user unit; gridcast-reporter-")
        assert installed.endswith(".service: active\n")
        unit = installed.split()[4].rstrip(":")
        assert eventually(lambda: server.reports), (state.path / "agent.log").read_text()
        used = "the run's programs at the reporter used"
        assert any(used in line.text for line in server.reports[0].log), "the unit's group is delegated"
        pid = manager.systemctl("show", "--property=MainPID", "--value", unit)
        manager.call("kill", "-KILL", pid)
        assert eventually(lambda: manager.systemctl("show", "-P", "SubState", unit) == "auto-restart")
        killed = len(server.exchanges)
        manager.systemctl("restart", unit)  # it would wait for a minute
        assert eventually(lambda: len(server.exchanges) > killed), (state.path / "agent.log").read_text()
    stopped = len(server.exchanges)
    with user_manager(home) as manager:
        assert eventually(lambda: len(server.exchanges) > stopped), "enabled: it starts with the manager"
        assert manager.systemctl("is-active", unit) == "active"
        assert reporter(manager, pyz, "uninstall", state) == "removed: systemd user unit\n"
        assert manager.systemctl("is-active", unit) == "inactive"
        assert not list(home.rglob("*.service"))
