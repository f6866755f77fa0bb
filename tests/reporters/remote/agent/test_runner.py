"""The agent's side of the run server: what the server announces arrives."""

from __future__ import annotations

import queue
from pathlib import Path

from reporters.remote.agent.jobs import RunJob
from reporters.remote.agent.runner import RunEnd, Runner
from tests.reporters.remote.policy.assignments import assignment

_ANNOUNCES = """
import sys

def main():
    print('{"killed_processes": 3}')
    print('{"run": "first", "status": 0, "cpu_seconds": 0.5}', flush=True)
    sys.stdin.read()
"""


def test_the_number_of_killed_processes_of_earlier_runs_is_told(tmp_path: Path) -> None:
    server = tmp_path / "reporters" / "remote" / "agent" / "run_server.py"
    server.parent.mkdir(parents=True)
    server.write_text(_ANNOUNCES)
    killed: list[int] = []
    ends = queue.SimpleQueue[RunEnd]()
    runner = Runner(tmp_path, ends.put, killed.append)
    runner.start(RunJob("first", assignment(), tmp_path / "result"))
    assert ends.get(timeout=60) == RunEnd("first", 0, 0.5)
    assert killed == [3]
    runner.close()
