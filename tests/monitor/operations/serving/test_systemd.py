from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.core import env
from monitor.operations.serving import systemd


def parsed(text: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    return unit


def test_the_unit_runs_this_installation_with_the_given_options() -> None:
    service = parsed(systemd.unit(["--bind=127.0.0.1:9000"], {}))["Service"]
    assert shlex.split(service["ExecStart"]) == [
        sys.executable,
        str(env.ROOT / "manage.py"),
        "serve",
        "--bind=127.0.0.1:9000",
    ]
    assert service["Environment"] == f"GRIDCAST_VAR={env.var_directory()}"
    assert service["WorkingDirectory"] == str(env.ROOT)


def test_secrets_of_the_environment_are_named_and_not_written() -> None:
    variables = {
        "DATABASE_URL": "postgresql://u:geheim@h/d",
        "GRIDCAST_SECRET_KEY": "geheim",
        "HOME": "/h",
        "GRIDCAST_VAR": "/v",
    }
    unit = systemd.unit([], variables)
    assert "geheim" not in unit
    assert "DATABASE_URL GRIDCAST_SECRET_KEY\n" in unit
    assert systemd.VARIABLES_FILE in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "gridcast.service"
    file.write_text(systemd.unit(["--capacity=4"], {}))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "gridcast.service" not in done.stderr


def test_a_path_with_special_characters_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_VAR", '/srv/100% of "it"')
    assert 'Environment="GRIDCAST_VAR=/srv/100%% of \\"it\\""\n' in systemd.unit([], {})
