"""A service that hangs is restarted; one that is slow is not, neither while it starts nor while it runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from monitor.operations.supervisor import Service
from monitor.operations.supervisor.guard import descendants
from monitor.operations.supervisor.stalls import Patience, Signs, main_nanoseconds, used_seconds

from .observed import running

TICKING = ["sh", "-c", "while :; do sleep 0.1; done"]
LOOK_SECONDS = 5.0


def looks(
    seconds: float,
    *,
    answers: bool | None = None,
    load: float | None = 0.0,
    runs: bool = True,
    is_starved: bool = False,
) -> list[Signs]:
    """Return what looks during *seconds* show of a service that uses *load* processors."""
    return [
        Signs(
            at=number * LOOK_SECONDS,
            answers=answers,
            used_seconds=None if load is None else load * number * LOOK_SECONDS,
            main_nanoseconds=number if runs else 0,
            is_starved=is_starved,
        )
        for number in range(int(seconds // LOOK_SECONDS) + 1)
    ]


def patience(signs: Sequence[Signs]) -> Patience:
    result = Patience(signs[0])
    for each in signs[1:]:
        result = result.after(each)
    return result


@pytest.mark.parametrize(
    ("signs", "hangs"),
    [
        (looks(3600, answers=True), False),
        (looks(25, answers=False), False),
        (looks(30, answers=False), True),
        (looks(30, answers=False, load=None), True),  # on a system without /proc
        (looks(140, answers=False, is_starved=True), False),  # the machine is slow
        (looks(150, answers=False, is_starved=True), True),  # that does not excuse it for ever
        (looks(140, answers=False, load=1.0), False),  # it computes: its own limits come first
        (looks(150, answers=False, load=1.0), True),
        (looks(3600, answers=None), False),  # no liveness check
        (looks(115, runs=False), False),
        (looks(120, runs=False), True),
        (looks(120, answers=True, runs=False), True),  # the workers answer, the main process is stopped
        (looks(590, runs=False, is_starved=True), False),
        (looks(600, runs=False, is_starved=True), True),
        ([Signs(0.0, answers=False), Signs(86_400.0, answers=False)], False),  # the machine slept
        ([*looks(25, answers=False), Signs(30.0, answers=True), Signs(35.0, answers=False)], False),
    ],
)
def test_a_service_hangs_after_enough_time_without_evidence(signs: list[Signs], hangs: bool) -> None:
    assert bool(patience(signs).hang(asleep_seconds=120.0)) is hangs


@pytest.mark.parametrize(
    ("signs", "still_seconds"),
    [
        (looks(3600, answers=False, load=0.05), 0),  # it needs an hour to start, and gets there
        (looks(60, answers=False), 60),
        (looks(60, answers=False, load=0.01), 60),  # it only polls
        (looks(60, answers=False, is_starved=True), 12),
        (looks(60, answers=False, load=None), 60),
    ],
)
def test_a_service_that_computes_is_starting(signs: list[Signs], still_seconds: float) -> None:
    assert patience(signs).still_seconds == pytest.approx(still_seconds)


def test_processor_time_is_read_of_all_processes_and_of_the_main_thread() -> None:
    before, main_before = used_seconds([os.getpid()]), main_nanoseconds(os.getpid())
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    assert used_seconds([os.getpid(), 2**30]) > before
    assert (main_nanoseconds(os.getpid()) or 0) > (main_before or 0)
    assert main_nanoseconds(2**30) is None


def test_a_service_that_starts_slowly_is_not_killed(tmp_path: Path) -> None:
    """It computes for longer than the limit before it is ready."""
    flag = tmp_path / "ready"
    script = f"n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; touch {flag}; exec sleep 600"
    slow = Service("slow", ["sh", "-c", script], ready=flag.exists, ready_seconds=0.5)
    with running(tmp_path, slow) as observed:
        assert observed.wait_for("slow", "up").restarts == 0


@pytest.mark.parametrize("whole", [False, True], ids=["its main process", "all of its processes"])
def test_a_stopped_service_is_restarted(tmp_path: Path, whole: bool) -> None:
    with running(tmp_path, Service("web", TICKING, asleep_seconds=0.5)) as observed:
        pid = observed.wait_for("web", "up").pid or 0
        for each in [pid, *(descendants(pid) if whole else [])]:
            os.kill(each, signal.SIGSTOP)
        again = observed.wait_for("web", "up", restarts=1)
        assert again.last_exit == "hung: its main thread did not run for 0.5 s"
        assert again.pid != pid
