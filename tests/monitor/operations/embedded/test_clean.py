"""Clean removes a state directory, its sockets and relocated data, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from monitor.core import env
from monitor.operations.embedded import NotOurs, places
from monitor.operations.embedded.clean import clean
from monitor.operations.embedded.servers import needed_servers
from monitor.operations.embedded.throwaway import throwaway
from monitor.operations.supervisor import read_status
from tests.waiting import eventually

from .conftest import UP_WITHIN_SECONDS

ROOT = Path(__file__).resolve().parents[4]

SUPERVISE = """
    import sys
    from pathlib import Path
    from monitor.core import env
    from monitor.operations.supervisor import Service, Supervisor
    var = env.make_var_directory(Path(sys.argv[1]))
    services = [Service("sleeper", ["sleep", "600"])]
    Supervisor(services, status_file=var / "run" / "supervisor.json", log_dir=var / "log").in_foreground()
"""


def is_up(status_file: Path) -> bool:
    status = read_status(status_file)
    return status is not None and status.services["sleeper"].state == "up"


def test_a_running_supervisor_is_stopped_first(tmp_path: Path) -> None:
    var = tmp_path / "var"
    status_file = var / "run" / "supervisor.json"
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(SUPERVISE), str(var)], cwd=ROOT) as process:
        try:
            assert eventually(lambda: is_up(status_file))
            clean(var)
            assert process.wait(UP_WITHIN_SECONDS) == 0
        finally:
            process.kill()
    assert not var.exists()


def test_a_directory_without_our_marker_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").touch()
    with pytest.raises(NotOurs, match="was not created by gridcast"):
        clean(home)
    assert (home / "thesis.tex").exists()


def test_a_home_given_as_state_directory_by_mistake_survives_cleaning(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    env.make_var_directory(tmp_path)
    with pytest.raises(NotOurs):
        clean(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_cleaning_a_missing_directory_is_no_error(tmp_path: Path) -> None:
    clean(tmp_path / "var")


def test_the_command_cleans_the_directory_of_the_environment(tmp_path: Path) -> None:
    var = env.make_var_directory(tmp_path / "var")
    environment = {**os.environ, "GRIDCAST_VAR": str(var)}
    subprocess.run(
        [sys.executable, "-m", "monitor.operations.embedded.clean"], cwd=ROOT, env=environment, check=True
    )
    assert not var.exists()


@pytest.mark.nightly
def test_throwaway_servers_leave_nothing(tmp_path: Path) -> None:
    var = tmp_path / "var"
    with throwaway(var, {}) as variables:
        assert sorted(variables) == ["DATABASE_URL", "REDIS_URL"]
        status = read_status(var / "run" / "supervisor.json")
        assert status is not None
        pids = [service.pid for service in status.services.values()]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert list(tmp_path.iterdir()) == []
    assert not places.socket_directory(var).exists()


def test_servers_with_a_url_in_the_environment_are_not_needed(tmp_path: Path) -> None:
    environment = {"DATABASE_URL": "postgresql://elsewhere/depot", "REDIS_URL": "redis://elsewhere"}
    assert needed_servers(tmp_path / "var", environment) == {}
    assert list(needed_servers(tmp_path / "var", {"REDIS_URL": "redis://elsewhere"})) == ["DATABASE_URL"]
