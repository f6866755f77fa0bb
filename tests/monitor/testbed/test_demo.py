"""The demo as a newcomer starts it, and as he ends it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.monitor.testbed.demos import Demo, until


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
def test_ctrl_c_stops_everything_and_the_next_demo_continues(demo: Callable[..., Demo]) -> None:
    one = demo()
    until(lambda: "gridcast is up" in one.said(), "the demo is up")
    assert "viewer / " in one.said()
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 0, one.said()
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
