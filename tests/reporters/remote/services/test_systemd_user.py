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
