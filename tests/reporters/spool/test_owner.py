"""Whether the writer of a chain has died."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reporters.spool.owner import CLOSED, HEARTBEAT, OWNER, SILENT_SECONDS, Observer, Process
from tests.reporters.spool.delivery import Clock, elsewhere


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def observer(clock: Clock) -> Observer:
    return Observer(Process.current(), lambda: clock.seconds)


def owned_by(directory: Path, process: Process) -> Path:
    (directory / OWNER).write_text(process.to_text())
    return directory


def test_a_process_of_this_host_is_looked_up(tmp_path: Path, observer: Observer) -> None:
    assert not observer.is_dead(owned_by(tmp_path, Process.current()))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        text = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
        other = replace(Process.current(), pid=child.pid, started=text)
        assert not observer.is_dead(owned_by(tmp_path, other))
        child.kill()
    assert observer.is_dead(owned_by(tmp_path, other))
    assert observer.is_proven(tmp_path)


def test_a_process_that_ended_and_is_not_collected_yet_is_dead(tmp_path: Path, observer: Observer) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert observer.is_dead(owned_by(tmp_path, replace(Process.current(), pid=child)))
    os.waitpid(child, 0)


def test_another_process_with_the_same_number_is_not_the_writer(tmp_path: Path, observer: Observer) -> None:
    assert observer.is_dead(owned_by(tmp_path, replace(Process.current(), started="1")))


@pytest.mark.parametrize(
    "process",
    [
        elsewhere(),
        replace(Process.current(), boot="an earlier boot"),
        replace(Process.current(), pid_namespace="pid:[1]"),
        replace(Process.current(), started=""),
    ],
)
def test_a_process_that_cannot_be_looked_up_is_dead_when_its_heartbeat_is_silent(
    tmp_path: Path, observer: Observer, clock: Clock, process: Process
) -> None:
    owned_by(tmp_path, process)
    assert not observer.is_proven(tmp_path)
    for beat in range(3):
        (tmp_path / HEARTBEAT).write_text(str(beat))
        assert not observer.is_dead(tmp_path)
        clock.seconds += SILENT_SECONDS - 1
        assert not observer.is_dead(tmp_path)
    clock.seconds += 1
    assert observer.is_dead(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}', '{"host": "a"}'])
def test_an_unreadable_owner_counts_as_a_process_elsewhere(
    tmp_path: Path, observer: Observer, clock: Clock, content: str
) -> None:
    (tmp_path / OWNER).write_text(content)
    assert not observer.is_dead(tmp_path)
    clock.seconds += SILENT_SECONDS
    assert observer.is_dead(tmp_path)


def test_a_writer_that_closed_its_chain_is_dead(tmp_path: Path, observer: Observer) -> None:
    (tmp_path / OWNER).write_text(CLOSED)
    assert observer.is_dead(tmp_path)
