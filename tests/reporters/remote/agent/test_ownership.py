"""One agent for a state directory, with real files and this process."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from reporters.remote.agent.ownership import (
    DIRECTORY,
    WAKE_SIGNAL,
    Ownership,
    living_owner,
    wake_owner,
)
from reporters.remote.state_directory import StateError
from reporters.spool.owner import HEARTBEAT, OWNER, SILENT_SECONDS, Process


class Hours:
    """A clock that waits by moving on; *beats* are what the agent on the other host does meanwhile."""

    def __init__(self, directory: Path, beats: int = 0) -> None:
        self.directory, self.beats, self.passed, self.told = directory, beats, 0.0, [""]

    def wait(self, seconds: float) -> None:
        self.passed += seconds
        if self.beats:
            self.beats -= 1
            (self.directory / HEARTBEAT).write_text(str(self.beats))

    def take(self) -> Ownership:
        ownership = Ownership(
            self.directory, tell=self.told.append, wait=self.wait, monotonic=lambda: self.passed
        )
        ownership.take()
        return ownership


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / DIRECTORY).mkdir()
    return tmp_path / DIRECTORY


def owned_by(directory: Path, process: Process) -> None:
    (directory / OWNER).write_text(process.to_text())


def test_the_owner_is_this_process_until_it_gives_up(directory: Path) -> None:
    assert living_owner(directory.parent) == ""
    ownership = Hours(directory).take()
    assert living_owner(directory.parent).startswith(f"process {os.getpid()} on ")
    assert not ownership.is_lost
    ownership.release()
    assert living_owner(directory.parent) == ""
    assert [file.name for file in directory.iterdir()] == [HEARTBEAT]


def test_a_process_that_executes_itself_again_stays_the_owner(directory: Path) -> None:
    Hours(directory).take()
    assert not Hours(directory).take().is_lost


def test_a_living_process_of_this_host_is_not_replaced(directory: Path) -> None:
    parent = Process.current()
    started = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19]
    owned_by(directory, replace(parent, pid=os.getppid(), started=started))
    with pytest.raises(
        StateError, match=f"another agent runs with {directory.parent}: process {os.getppid()}"
    ):
        Hours(directory).take()


@pytest.mark.parametrize("change", [{"started": "1"}, {"boot": "an earlier one"}])
def test_a_dead_process_of_this_host_is_replaced_at_once(directory: Path, change: dict[str, str]) -> None:
    owned_by(directory, replace(Process.current(), pid=os.getppid(), **change))
    hours = Hours(directory)
    assert not hours.take().is_lost
    assert hours.passed == 0


def test_an_agent_on_another_host_is_replaced_after_its_silence(directory: Path) -> None:
    owned_by(directory, replace(Process.current(), host="login2", boot="another"))
    hours = Hours(directory, beats=20)
    hours.take()
    assert hours.passed >= SILENT_SECONDS + 200, "it was not silent at first"
    assert "an agent on login2" in hours.told[-1]


def test_an_agent_that_was_replaced_notices_it(directory: Path) -> None:
    ownership = Hours(directory).take()
    owned_by(directory, replace(Process.current(), host="login2"))
    assert ownership.is_lost
    ownership.release()
    assert (directory / OWNER).exists(), "it is the other agent's"


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_damaged_file_is_replaced(directory: Path, content: str) -> None:
    (directory / OWNER).write_text(content)
    assert not Hours(directory).take().is_lost


def test_only_the_owner_on_this_host_is_woken(directory: Path) -> None:
    woken: list[int] = []
    before = signal.signal(WAKE_SIGNAL, lambda number, _frame: woken.append(number))
    try:
        assert not wake_owner(directory.parent), "there is no owner"
        own = Process.current()
        for other in (replace(own, host="login2"), replace(own, boot="earlier"), replace(own, started="1")):
            owned_by(directory, other)
            assert not wake_owner(directory.parent)
        assert woken == []
        owned_by(directory, Process.current())
        assert wake_owner(directory.parent)
        assert woken == [WAKE_SIGNAL]
    finally:
        signal.signal(WAKE_SIGNAL, before)
