"""The load guard: it reads the load from Linux and ignores an unreadable one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from probes.base import ProbeFailed
from probes.grid import Completed
from reporters import load
from tests.probes.runs import install, logged, run_locally


class Machine:
    """A shell that prints *loadavg* once all shells at *barrier* have been called."""

    def __init__(self, loadavg: str, barrier: threading.Barrier) -> None:
        self.loadavg, self.barrier = loadavg, barrier

    def check(self, _argv: object, *, timeout_seconds: float, doing: str, input: str | None = None) -> str:
        self.barrier.wait(60)
        return self.loadavg

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        raise AssertionError(f"nobody asked to run {argv}")


def test_all_loads_are_read_in_parallel_and_all_busy_resources_named() -> None:
    barrier = threading.Barrier(3)
    says = {"iu": "8 0 0 1/1 1", "anl": "0.5 0 0 1/1 1", "sdsc": "4.25 0 0 1/1 1"}
    machines = {name: Machine(loadavg, barrier) for name, loadavg in says.items()}
    log: list[str] = []
    with pytest.raises(load.TooBusy) as raised:
        load.check(machines.__getitem__, says, 4.0, lambda text, _level: log.append(text))
    assert str(raised.value) == "load: 8 at iu, 4.25 at sdsc, at most 4 allowed"
    assert sorted(log) == ["the load at anl is 0.5", "the load at iu is 8", "the load at sdsc is 4.25"]


@pytest.mark.parametrize(
    ("text", "load1"),
    [
        ("0.52 0.58 0.59 1/467 12345\n", 0.52),
        ("128.00 97.31 60.20 131/2210 30817\n", 128.0),
        ("0.00 0.01 0.05 1/89 1\n", 0.0),
    ],
)
def test_the_one_minute_load_is_the_first_number(text: str, load1: float) -> None:
    assert load.parse_loadavg(text) == load1


@pytest.mark.parametrize("text", ["", "0.52\n", "5.2% 3 1\n", "load averages: 0.52 0.58 0.59\n"])
def test_anything_else_is_no_load(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable /proc/loadavg"):
        load.parse_loadavg(text)


def begin(tmp_path: Path, max_load1: float, **changes: Any) -> tuple[str, str, list[str]]:
    """Outcome, reason and warnings of a login."""
    report = run_locally("login", tmp_path, {}, max_load1=max_load1, **changes)
    return report.outcome, report.reason, logged(report, "warning")


def busy(text: str) -> str:
    """Install a ``cat`` that prints *text* for the load and works normally otherwise."""
    return f'case $1 in /proc/loadavg) echo "{text}" ;; *) exec /bin/cat "$@" ;; esac'


def test_a_busy_resource_is_named_with_its_load_and_nothing_is_left_there(tmp_path: Path) -> None:
    install(tmp_path, "cat", busy("5.2 4.0 3.0 1/100 9"))
    assert begin(tmp_path, 4.0) == ("skipped", "load: 5.2 at at-target, at most 4 allowed", [])
    assert list((tmp_path / "at-target" / "scratch").iterdir()) == []


def test_an_idle_resource_does_not_prevent_the_run(tmp_path: Path) -> None:
    install(tmp_path, "cat", busy("3.9 4.0 3.0 1/100 9"))
    assert begin(tmp_path, 4.0)[0] == "passed"


def test_an_unreadable_load_does_not_prevent_the_run_and_is_logged(tmp_path: Path) -> None:
    install(tmp_path, "cat", "echo 'cat: /proc/loadavg: No such file or directory' >&2; exit 1")
    outcome, _, warnings = begin(tmp_path, 0.01)
    assert outcome == "passed"
    assert warnings == [
        "the load at at-target is not known: cannot read /proc/loadavg at at-target: "
        "cat: /proc/loadavg: No such file or directory"
    ]


def test_an_unreachable_resource_is_left_to_the_first_stage(tmp_path: Path) -> None:
    unreachable = {"shell": {"kind": "ssh", "host": "nowhere.invalid"}}
    outcome, reason, warnings = begin(tmp_path, 0.01, resource=unreachable)
    assert (outcome, reason[:30]) == ("failed", "init at at-target failed: cann")
    assert warnings[0].startswith("the load at at-target is not known: cannot connect to nowhere.invalid:22")
