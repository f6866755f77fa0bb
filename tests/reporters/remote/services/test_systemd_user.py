"""The systemd user unit: what it says, and that systemd understands it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reporters.remote.service import Launch
from reporters.remote.services.systemd_user import SiteService
from tests.reporters.needs import needs


@pytest.mark.parametrize("name", ["state", '50 % of "a" $HOME\'s\\state'])
def test_systemd_understands_the_unit(tmp_path: Path, name: str) -> None:
    needs("systemd-analyze")
    state = tmp_path / name
    state.mkdir()
    launch = Launch(state)
    unit = tmp_path / f"{launch.name}.service"
    unit.write_text(SiteService(launch).text())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert launch.name not in done.stderr


def test_without_a_user_manager_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert SiteService(Launch(tmp_path)).unavailable() == "no systemctl on the PATH"
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n")
    systemctl.chmod(0o755)
    assert SiteService(Launch(tmp_path)).unavailable() == (
        "no systemd user manager: Failed to connect to bus: No medium found"
    )


def test_the_unit_is_enabled_once_written_and_removed_once_disabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemctl writes down its arguments, and whether there is a unit file."""
    programs, configuration = tmp_path / "bin", tmp_path / "config"
    programs.mkdir()
    launch = Launch(tmp_path / "state")
    unit = configuration / "systemd" / "user" / f"{launch.name}.service"
    systemctl = programs / "systemctl"
    systemctl.write_text(f'#!/bin/sh\n[ -e "{unit}" ] && found=yes\necho "$* $found" >> {tmp_path}/calls\n')
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(configuration))
    service = SiteService(launch)
    service.remove()  # nothing is installed
    service.install()
    assert unit.read_text() == service.text()
    service.stop()
    service.remove()
    assert not unit.exists()
    assert (tmp_path / "calls").read_text().splitlines() == [
        "--user daemon-reload yes",
        f"--user enable --now {unit.name} yes",
        f"--user stop {unit.name} yes",
        f"--user disable --now {unit.name} yes",
        "--user daemon-reload ",
    ]
