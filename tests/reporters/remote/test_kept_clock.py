"""The server's time, kept on disk for the next agent of the same boot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reporters.remote.clock import DRIFT, ClockEstimate, ExchangeTimes
from reporters.remote.kept_clock import FILE, KEPT_SECONDS, KeptClock, is_worth_keeping, steady_epoch
from reporters.remote.state_directory import StateDirectory

NOON = 1_800_000_000.0


class Host:
    """A host and its clocks; *wall_error* is the error of the wall clock."""

    def __init__(self, directory: Path) -> None:
        self.state = StateDirectory.create(directory / "state")
        self.steady, self.wall_error, self.epoch = 1000.0, 0.0, "boot 1"

    @property
    def server(self) -> float:
        return NOON + self.steady

    def agent(self) -> KeptClock:
        return KeptClock(self.state, lambda: self.server + self.wall_error, lambda: self.steady, self.epoch)

    def exchange(self, clock: KeptClock, seconds: float = 0.04) -> None:
        sent = self.steady
        self.steady += seconds
        middle = self.server - seconds / 2
        clock.add(ExchangeTimes(sent, middle, middle, self.steady))

    @property
    def kept(self) -> dict[str, object]:
        return dict(json.loads((self.state.path / FILE).read_text()))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize("jump", [3600, -3600])
def test_the_next_agent_of_the_boot_knows_the_time_without_the_server(host: Host, jump: float) -> None:
    host.exchange(host.agent())
    host.steady += 3 * 3600
    host.wall_error = jump
    later = host.agent()
    assert later.is_known
    assert abs(later.now_seconds() - host.server) <= 0.02 + 3 * 3600 * DRIFT + 1e-6
    assert later.server_seconds() == pytest.approx(host.server)


def test_after_a_boot_the_wall_clock_counts(host: Host) -> None:
    host.exchange(host.agent())
    host.epoch, host.wall_error = "boot 2", 3600
    assert not host.agent().is_known
    assert host.agent().now_seconds() == host.server + 3600


def test_without_a_boot_id_nothing_is_kept(host: Host) -> None:
    host.epoch = ""
    host.exchange(host.agent())
    assert not (host.state.path / FILE).exists()
    assert not host.agent().is_known


def test_an_exchange_corrects_what_was_kept(host: Host) -> None:
    host.exchange(host.agent())
    later = host.agent()
    host.steady += 1
    middle = host.server + 30  # the server's clock was set
    later.add(ExchangeTimes(host.steady - 0.01, middle, middle, host.steady))
    assert later.server_seconds() == pytest.approx(host.server + 30, abs=0.02)
    assert host.agent().server_seconds() == pytest.approx(host.server + 30, abs=0.02)


BAD = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b'{"epoch": "boot 1", "offset": 1, "bound": -1, "at": 1}',
    b'{"epoch": "boot 1", "offset": 1e300, "bound": 1, "at": 1}',
    b'{"epoch": "boot 1", "offset": "1", "bound": 1, "at": 1}',
    b'{"epoch": "boot 1", "offset": 1, "bound": 1, "at": 1e9}',
    b'{"epoch": ["boot 1"], "offset": 1, "bound": 1, "at": 1}',
]


@pytest.mark.parametrize("content", BAD)
def test_a_damaged_file_counts_as_none_and_is_replaced(host: Host, content: bytes) -> None:
    host.state.write(FILE, content)
    clock = host.agent()
    assert not clock.is_known
    host.exchange(clock)
    assert host.agent().is_known


def test_a_directory_that_cannot_be_written_changes_nothing(host: Host) -> None:
    clock = host.agent()
    (host.state.path / FILE).mkdir()
    host.exchange(clock)
    assert clock.is_known


OLD = ClockEstimate(NOON, 0.02, 1000.0)
CASES = {
    "nothing is kept": (OLD, None, 1000.0, True),
    "the same": (OLD, OLD, 1000.0 + 10 * KEPT_SECONDS, False),
    "a minute newer": (ClockEstimate(NOON, 0.02, 1060.0), OLD, 1060.0, False),
    "ten minutes newer": (ClockEstimate(NOON, 0.2, 1000.0 + KEPT_SECONDS), OLD, 1000.0 + KEPT_SECONDS, True),
    "a fifth of the bound": (ClockEstimate(NOON, 0.004, 1001.0), OLD, 1001.0, True),
    "half of the bound": (ClockEstimate(NOON, 0.01, 1001.0), OLD, 1001.0, False),
    "the server's clock was set": (ClockEstimate(NOON + 1, 0.02, 1001.0), OLD, 1001.0, True),
}


@pytest.mark.parametrize("case", CASES)
def test_the_disk_is_written_only_for_something_better(case: str) -> None:
    best, kept, steady, expected = CASES[case]
    assert is_worth_keeping(best, kept, steady) is expected


def test_a_day_of_exchanges_writes_the_file_seldom(host: Host) -> None:
    clock, contents = host.agent(), set()
    for _ in range(24 * 60):
        host.exchange(clock)
        host.steady += 60
        contents.add(str(host.kept))
    assert 24 * 6 / 2 < len(contents) <= 24 * 60 / 4


def test_this_host_has_an_epoch_that_stays() -> None:
    assert steady_epoch() == steady_epoch()
    assert len(steady_epoch()) >= 36
