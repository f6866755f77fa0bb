"""The cron of a site of the local grid."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from monitor.testbed.sites.cron import due_commands
from monitor.testbed.sites.description import GridDescription
from monitor.testbed.sites.grid import running_sites
from tests.waiting import eventually

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TABLE = """\
# a comment
MAILTO=""
@reboot echo boot
*/5 * * * * echo five  minutes
7 12 * * * echo seven
61 * * * * echo never
"""


def test_commands_are_due_once_at_their_minutes(tmp_path: Path) -> None:
    table = tmp_path / "table"
    assert list(due_commands(table, NOON, NOON + timedelta(hours=1))) == []
    table.write_text(TABLE)
    ran = [
        (minute, command)
        for minute in range(10)
        for command in due_commands(
            table, NOON + timedelta(minutes=minute, seconds=-30), NOON + timedelta(minutes=minute, seconds=30)
        )
    ]
    assert ran == [(0, "echo five  minutes"), (5, "echo five  minutes"), (7, "echo seven")]


def ssh(grid: GridDescription, command: str) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(grid.ssh_config), "-o", "BatchMode=yes", "anl", command]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_a_crontab_survives_a_restart_of_the_site_which_starts_its_programs(tmp_path: Path) -> None:
    with running_sites(tmp_path, 1) as grid:
        assert "no crontab for grid" in ssh(grid, "crontab -l").stderr
        assert ssh(grid, "echo '@reboot env > booted' > table && crontab table").returncode == 0
        assert ssh(grid, "crontab -l").stdout == "@reboot env > booted\n"
    booted = tmp_path / "sites" / "anl" / "home" / "booted"
    assert not booted.exists()
    with running_sites(tmp_path, 1) as grid:
        assert eventually(lambda: booted.exists() and "SITE_NAME=anl" in booted.read_text())
        assert ssh(grid, "crontab -r").returncode == 0
        assert ssh(grid, "crontab -l").returncode == 1


def test_what_a_crontab_has_started_ends_with_the_site(tmp_path: Path) -> None:
    with running_sites(tmp_path, 1):
        pass
    (tmp_path / "sites" / "anl" / "crontab").write_text("@reboot setsid sleep 86399 &\n")
    with running_sites(tmp_path, 1):
        assert eventually(lambda: sleepers(tmp_path))
    assert sleepers(tmp_path) == []


def sleepers(grid: Path) -> list[str]:
    """Return the processes ``sleep 86399`` of *grid*."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if b"86399" in (process / "cmdline").read_bytes().split(b"\0") and (
                str(grid).encode() in (process / "environ").read_bytes()
            ):
                found.append(process.name)
        except OSError:
            continue
    return found
