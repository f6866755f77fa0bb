"""The demo as a newcomer starts it, while its services are killed, and as he ends it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.monitor.testbed.demos import Demo


@dataclass
class Done:
    """A demo that has done its rounds, and its summary."""

    demo: Demo
    summary: dict[str, Any]


@pytest.fixture(scope="module")
def done(demo: Callable[..., Demo], tmp_path_factory: pytest.TempPathFactory) -> Done:
    file = tmp_path_factory.mktemp("summary") / "out.json"
    one = demo("--rounds=3", "--exit", f"--json={file}")
    assert one.wait() == 0, one.said()
    assert one.processes() == []
    return Done(one, json.loads(file.read_text()))


@pytest.mark.grid
def test_rounds_account_for_every_run_and_leave_nothing(done: Done) -> None:
    summary = done.summary
    assert summary["complete"]
    assert summary["expected_runs"] == summary["accounted_runs"] == 9
    for series in summary["series"].values():
        assert series["runs"] == {"passed": 3}
        assert all(stage["n"] == 3 and stage["stdev"] is not None for stage in series["stages"].values())
        assert set(series["totals"]) == {"total", "total_essential", "total_core"}
        interval = series["forecast"]["interval"]
        assert 0 <= interval["lower"] <= series["forecast"]["median"] <= interval["upper"]
    assert summary["scratch_files_left"] == []


@pytest.mark.grid
def test_the_next_demo_continues_and_ctrl_c_stops_everything(demo: Callable[..., Demo], done: Done) -> None:
    one = demo(before=done.demo)
    assert one.eventually(lambda: "gridcast is up" in one.said())
    assert "viewer / " in one.said()
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 0, one.said()
    assert one.processes() == []


@pytest.mark.grid
@pytest.mark.chaos
def test_whatever_is_killed_no_run_is_lost_or_doubled(
    demo: Callable[..., Demo], done: Done, tmp_path: Path
) -> None:
    file = tmp_path / "out.json"
    one = demo("--rounds=3", f"--json={file}", before=done.demo)
    assert one.eventually(lambda: "circle-main" in one.said().partition("Finished runs follow")[2]), (
        one.said()
    )
    for service in ("web", "postgres", "valkey", "reporter", "control", "beat"):
        one.kill(service)
    assert one.eventually(lambda: "The rounds are done" in one.said()), one.said()
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 0, one.said()
    summary = json.loads(file.read_text())
    assert summary["complete"], one.said()
    assert {name: sum(series["runs"].values()) for name, series in summary["series"].items()} == {
        "gather-main": 3,
        "circle-main": 3,
        "preco-main": 3,
    }
    assert one.processes() == []


def test_options_that_make_no_sense_are_refused_before_anything_starts(demo: Callable[..., Demo]) -> None:
    one = demo("--exit")
    assert one.wait() == 1
    assert "--rounds" in one.said()
    assert not (one.var / "log").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--exit"], "--rounds"),
        (["--rounds=-1"], "positive"),
        (["--rounds=1", "--json=/no/such/place/out.json"], "/no/such/place"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(options: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("demo", *options)
