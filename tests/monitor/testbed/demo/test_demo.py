"""The demo from start to Ctrl-C while its services are killed; one demo serves all tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from monitor.testbed.demo.definition import REMOTE_REPORTERS
from tests.monitor.testbed.demo.demo_process import DemoProcess

EVERY_SERVICE = ("web", "postgres", "valkey", "reporter", "control", "beat")


@dataclass
class FinishedDemo:
    demo: DemoProcess
    summary: dict[str, Any]


@pytest.fixture(scope="session")
def demo(start_demo: Callable[..., DemoProcess], tmp_path_factory: pytest.TempPathFactory) -> FinishedDemo:
    """Run a round, kill two services, and press Ctrl-C after it.

    Both services are none that probes run in: all runs pass.
    """
    file = tmp_path_factory.mktemp("summary") / "out.json"
    process = start_demo("--rounds=1", f"--json={file}")
    return FinishedDemo(process, kill_and_finish(process, file, ("postgres", "control")))


def kill_and_finish(demo: DemoProcess, file: Path, services: Sequence[str]) -> dict[str, Any]:
    """Kill *services* after the first run has ended, interrupt after the last; return the summary."""
    has_first_run = demo.eventually(
        lambda: "circle-main" in demo.output().partition("Finished runs follow")[2]
    )
    assert has_first_run, demo.output()
    for service in services:
        demo.kill(service)
    assert demo.eventually(lambda: "The rounds are done" in demo.output()), demo.output()
    assert demo.eventually(lambda: have_reported(demo)), demo.log("reporters")
    # A cron line starts the agent's script each minute, which ends if an agent runs.
    assert demo.eventually(lambda: len(demo.agents()) == len(REMOTE_REPORTERS)), demo.agents()
    assert demo.interrupt() == 0, demo.output()
    assert demo.processes() == []
    assert demo.agents() == []
    summary: dict[str, Any] = json.loads(file.read_text())
    assert summary["complete"], demo.output()
    return summary


def have_reported(demo: DemoProcess) -> bool:
    """Return whether all remote reporters have sent a heartbeat."""
    log = demo.log("reporters")
    return all(re.search(f"^{name} +reports", log, re.MULTILINE) for name in REMOTE_REPORTERS)


def have_passed_a_disk(demo: DemoProcess) -> bool:
    return all(re.search(f"disk-{name} +passed", demo.output()) for name in REMOTE_REPORTERS)


def run_counts(summary: dict[str, Any]) -> dict[str, int]:
    return {name: sum(series["runs"].values()) for name, series in summary["series"].items()}


@pytest.mark.grid
def test_rounds_account_for_every_run_and_leave_nothing(demo: FinishedDemo) -> None:
    check_summary(demo.summary, 1)


def check_summary(summary: dict[str, Any], rounds: int) -> None:
    assert summary["complete"]
    assert summary["expected_runs"] == summary["accounted_runs"] == 3 * rounds
    for series in summary["series"].values():
        assert series["runs"] == {"passed": rounds}
        assert all(stage["n"] == rounds for stage in series["stages"].values())
        assert set(series["totals"]) == {"total", "total_essential", "total_core"}
    assert summary["scratch_files_left"] == []


@pytest.mark.grid
@pytest.mark.chaos
def test_killing_services_neither_loses_nor_duplicates_a_run(demo: FinishedDemo) -> None:
    assert run_counts(demo.summary) == {"gather-main": 1, "circle-main": 1, "preco-main": 1}


@pytest.mark.grid
@pytest.mark.nightly
def test_three_rounds_give_a_forecast_with_its_interval(
    start_demo: Callable[..., DemoProcess], tmp_path: Path
) -> None:
    file = tmp_path / "out.json"
    demo = start_demo("--rounds=3", "--exit", f"--json={file}")
    assert demo.wait() == 0, demo.output()
    summary = json.loads(file.read_text())
    check_summary(summary, 3)
    for series in summary["series"].values():
        assert all(stage["stdev"] is not None for stage in series["stages"].values())
        interval = series["forecast"]["interval"]
        assert 0 <= interval["lower"] <= series["forecast"]["median"] <= interval["upper"]


@pytest.mark.grid
def test_ctrl_c_stops_everything(demo: FinishedDemo) -> None:
    output = demo.demo.output()
    assert "gridcast is up" in output
    assert "viewer / " in output
    assert demo.demo.processes() == []


@pytest.mark.grid
def test_the_study_is_made_of_an_ended_demo_and_knows_its_weather(demo: FinishedDemo, tmp_path: Path) -> None:
    html = tmp_path / "study.html"
    made = demo.demo.command("report", "study", "--grid=teragrid", "--json", f"--html={html}")
    assert made.returncode == 0, made.stderr
    document = json.loads(made.stdout)
    assert [weather["profile"] for weather in document["weathers"]] == ["calm"]
    assert document["seconds_of_the_grid_per_second"] == 20.0
    assert {name: found["passed"] for name, found in document["outcomes"].items()} == {
        "gather-main": 1,
        "circle-main": 1,
        "preco-main": 1,
    }
    assert "No run met the weather of TeraGrid" in html.read_text(encoding="utf-8")
    assert demo.demo.processes() == []


@pytest.mark.grid
@pytest.mark.nightly
def test_the_next_demo_continues_and_ends_by_itself_after_its_rounds(
    start_demo: Callable[..., DemoProcess], demo: FinishedDemo, tmp_path: Path
) -> None:
    file = tmp_path / "out.json"
    following = start_demo("--rounds=1", "--exit", f"--json={file}", after=demo.demo)
    assert following.wait() == 0, following.output()
    assert following.processes() == []
    assert run_counts(json.loads(file.read_text())) == {"gather-main": 1, "circle-main": 1, "preco-main": 1}


@pytest.mark.grid
@pytest.mark.chaos
@pytest.mark.nightly
def test_killing_every_service_neither_loses_nor_duplicates_a_run(
    start_demo: Callable[..., DemoProcess], tmp_path: Path
) -> None:
    file = tmp_path / "out.json"
    demo = start_demo("--rounds=3", f"--json={file}")
    summary = kill_and_finish(demo, file, EVERY_SERVICE)
    assert run_counts(summary) == {"gather-main": 3, "circle-main": 3, "preco-main": 3}


@pytest.mark.grid
@pytest.mark.nightly
def test_remote_reporters_run_their_series_and_end_with_a_killed_demo(
    start_demo: Callable[..., DemoProcess],
) -> None:
    demo = start_demo()
    assert demo.eventually(lambda: have_passed_a_disk(demo)), demo.output()
    demo.process.kill()
    assert demo.eventually(lambda: demo.agents() == []), demo.agents()
    assert demo.eventually(lambda: demo.processes() == [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--exit"], "--rounds"),
        (["--rounds=-1"], "positive"),
        (["--rounds=1", "--json=/no/such/place/out.json"], "/no/such/place"),
        (["--scale=5"], "expected 20 to 100, got 5"),
        (["--scale=nan"], "expected 20 to 100, got nan"),
    ],
)
def test_the_message_about_an_unusable_option_names_it(options: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("demo", *options)
