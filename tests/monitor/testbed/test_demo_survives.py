"""The demo while its services are killed. A module of its own, so that another worker may run it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.monitor.testbed.demos import Demo


@pytest.mark.grid
@pytest.mark.chaos
def test_whatever_is_killed_no_run_is_lost_or_doubled(demo: Callable[..., Demo], tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    one = demo("--rounds=3", "--exit", f"--json={file}")
    assert one.eventually(lambda: "circle-main" in one.said().partition("Finished runs follow")[2]), (
        one.said()
    )
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
