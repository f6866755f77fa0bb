"""The demo as a newcomer starts it: one command, real processes, which may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.embedded.clean import clean
from monitor.testbed.supervisor import read_status

ROOT = Path(__file__).resolve().parents[3]
WITHIN_SECONDS = 240.0


def until(holds: Callable[[], Any], what: str, within_seconds: float = WITHIN_SECONDS) -> Any:
    """The first true answer of *holds*, asked again and again."""
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        answer = holds()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"not within {within_seconds:.0f} s: {what}")


class Demo:
    """A demo in a process of its own, with servers of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.var = directory / "var"
        self.output = directory / "output"
        environment = {
            name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}
        }
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "demo", "--weather=calm", *options],
                env={**environment, "GRIDCAST_VAR": str(self.var)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        return self.output.read_text()

    def pid(self, service: str) -> int | None:
        """Of the service's own process, while it is up."""
        status = read_status(self.var / "run" / "supervisor.json")
        known = status.services.get(service) if status else None
        return known.pid if known and known.state == "up" else None

    def kill(self, service: str) -> None:
        """SIGKILL, and wait until the supervisor has brought it back."""
        pid = until(lambda: self.pid(service), f"{service} is up")
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.pid(service) not in {None, pid}, f"{service} is up again")

    def processes(self) -> list[int]:
        """Everything alive that belongs to this demo."""
        mark = f"GRIDCAST_VAR={self.var}".encode()
        return [
            int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and has(entry, mark)
        ]

    def wait(self) -> int:
        return self.process.wait(WITHIN_SECONDS)


def has(process: Path, mark: bytes) -> bool:
    try:
        return mark in (process / "environ").read_bytes()
    except OSError:
        return False


@pytest.fixture
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*options: str) -> Demo:
        directory = tmp_path_factory.mktemp("demo")
        directory.chmod(0o755)
        started.append(Demo(directory, *options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        clean(one.var)


@pytest.mark.grid
def test_two_rounds_account_for_every_run_and_leave_nothing(
    demo: Callable[..., Demo], tmp_path: Path
) -> None:
    file = tmp_path / "out.json"
    one = demo("--rounds=3", "--exit", f"--json={file}")
    assert one.wait() == 0, one.said()
    summary = json.loads(file.read_text())
    assert summary["complete"]
    assert summary["expected_runs"] == summary["accounted_runs"] == 9
    for series in summary["series"].values():
        assert series["runs"] == {"passed": 3}
        assert all(stage["n"] == 3 and stage["stdev"] is not None for stage in series["stages"].values())
        assert set(series["totals"]) == {"total", "total_essential", "total_core"}
        interval = series["forecast"]["interval"]
        assert 0 <= interval["lower"] <= series["forecast"]["mean"] <= interval["upper"]
    assert summary["scratch_files_left"] == []
    assert one.processes() == []


@pytest.mark.grid
@pytest.mark.chaos
def test_whatever_is_killed_no_run_is_lost_or_doubled(demo: Callable[..., Demo], tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    one = demo("--rounds=3", "--exit", f"--json={file}")
    until(lambda: "circle-main" in one.said().partition("Finished runs follow")[2], "a first run has ended")
    for service in ("web", "postgres", "valkey", "reporter", "control", "beat"):
        one.kill(service)
    assert one.wait() == 0, one.said()
    summary = json.loads(file.read_text())
    assert summary["complete"], one.said()
    assert {name: sum(series["runs"].values()) for name, series in summary["series"].items()} == {
        "gather-main": 3,
        "circle-main": 3,
        "preco-main": 3,
    }
    assert one.processes() == []


@pytest.mark.grid
def test_ctrl_c_stops_everything_and_the_next_demo_continues(demo: Callable[..., Demo]) -> None:
    one = demo()
    until(lambda: "gridcast is up" in one.said(), "the demo is up")
    assert "viewer / " in one.said()
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 0, one.said()
    assert one.processes() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--exit"], "--rounds"),
        (["--rounds=-1"], "positive"),
        (["--rounds=1", "--json=/no/such/place/out.json"], "/no/such/place"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_starts(
    demo: Callable[..., Demo], options: list[str], said: str
) -> None:
    one = demo(*options)
    assert one.wait() == 1
    assert said in one.said()
    assert not (one.var / "log").exists()
