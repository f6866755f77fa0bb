"""The processes of agents on this host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reporters.remote import agent_process


def test_agents_of_a_state_are_found_oldest_first_and_no_others(tmp_path: Path) -> None:
    """``sh`` in the place of Python waits for a line on its input."""
    state, other = tmp_path / "state", tmp_path / "other"
    state.mkdir()
    (state / "start").write_text("read line\n")
    script = tmp_path / "reporter.pyz"
    script.write_text("read line\n")

    def start(*argv: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(argv, stdin=subprocess.PIPE)

    with (
        start("/bin/sh", str(state / "start"), "--if-not-running") as first,
        start("/bin/sh", str(script), "run", "--state", str(other)) as stranger,
    ):
        try:
            assert agent_process.pids(state) == [first.pid]
            assert agent_process.pids(other) == []
            assert agent_process.describe(state) == f"the agent is process {first.pid}"
        finally:
            for process in (first, stranger):
                process.kill()
    assert agent_process.pids(state) == []


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ({"1": "systemd", "70": "sshd"}, False),
        ({"1": "systemd", "70": "crond"}, True),
        ({"1": "systemd", "70": "cron"}, True),
        ({"70": "bash"}, True),
    ],
)
def test_a_host_without_a_cron_daemon_is_recognised(
    tmp_path: Path, processes: dict[str, str], expected: bool
) -> None:
    """Where the first process is hidden, the daemon would be, too."""
    for pid, name in processes.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "comm").write_text(f"{name}\n")
    assert agent_process.may_run({"cron", "crond"}, tmp_path) is expected
