from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from reporters.remote.clock import DRIFT, ClockOffset, ExchangeTimes, SiteClock, estimate

NOON = 1_800_000_000.0
delays = st.floats(0, 100)


class Clocks:
    """The clocks of a site and of a server; *offset* is the server's clock minus the wall clock."""

    def __init__(self, offset: float = 0.0) -> None:
        self.passed, self.wall_error, self.offset = 0.0, 0.0, offset
        self.site = SiteClock(lambda: NOON + self.passed + self.wall_error, lambda: 5.0 + self.passed)

    @property
    def server(self) -> float:
        return NOON + self.offset + self.passed

    def exchange(self, there: float, back: float) -> None:
        sent = self.site.steady()
        self.passed += there
        received = self.server
        self.passed += back
        self.site.add(ExchangeTimes(sent, received, received, self.site.steady()))


@given(st.floats(-1e6, 1e6), delays, delays, delays)
def test_the_offset_is_within_its_bound_whatever_the_delays(
    offset: float, there: float, server: float, back: float
) -> None:
    sent = 1000.0
    received = sent + there + offset + NOON
    answered = received + server
    found = estimate(ExchangeTimes(sent, received, answered, sent + there + server + back))
    assert found is None or abs(found.offset_seconds - (offset + NOON)) <= found.bound_seconds + 1e-5


def test_contradicting_times_give_no_offset() -> None:
    assert estimate(ExchangeTimes(0, NOON + 1, NOON, 5)) is None
    assert estimate(ExchangeTimes(0, NOON, NOON + 6, 5)) is None
    assert estimate(ExchangeTimes(0, math.nan, NOON, 5)) is None
    assert estimate(ExchangeTimes(0, 1e300, 1e300, 5)) is None
    assert estimate(ExchangeTimes(0, -1, -1, 5)) is None


def test_without_an_exchange_the_wall_clock_counts() -> None:
    clocks = Clocks()
    assert not clocks.site.is_known
    assert clocks.site.offset() is None
    clocks.wall_error = 3600
    assert clocks.site.now_seconds() == clocks.site.server_seconds() == NOON + 3600


def test_a_jump_of_the_wall_clock_moves_the_time_by_at_most_the_bound() -> None:
    clocks = Clocks(offset=0.01)
    clocks.exchange(0.02, 0.03)
    for jump in (3600, -3600):
        clocks.wall_error = jump
        assert abs(clocks.site.now_seconds() - clocks.server) <= 2 * 0.025 + 1e-6
        offset = clocks.site.offset()
        assert offset is not None
        assert abs(offset.offset_seconds - (clocks.server - (NOON + clocks.passed + jump))) <= 0.025 + 1e-6


def test_the_exchange_with_the_smallest_bound_counts() -> None:
    clocks = Clocks(offset=100)
    clocks.exchange(0.001, 0.001)
    clocks.exchange(5, 0.001)
    assert abs(clocks.site.server_seconds() - clocks.server) < 0.01


def test_a_server_whose_clock_was_set_is_followed_at_the_next_exchange() -> None:
    clocks = Clocks()
    clocks.exchange(0.001, 0.001)
    clocks.offset = 30.0
    clocks.exchange(0.5, 0.5)
    assert abs(clocks.site.server_seconds() - clocks.server) <= 0.5


def test_after_weeks_alone_a_right_wall_clock_counts_again() -> None:
    """Two weeks allow the steady clock a drift of four minutes."""
    clocks = Clocks(offset=2.0)
    clocks.exchange(0.01, 0.01)
    assert clocks.site.now_seconds() > NOON + clocks.passed + 1.9
    clocks.passed += 14 * 86400
    assert clocks.site.now_seconds() == NOON + clocks.passed
    clocks.wall_error = -7200
    assert abs(clocks.site.now_seconds() - clocks.server) < 14 * 86400 * DRIFT + 1


def test_the_offset_has_both_numbers() -> None:
    clocks = Clocks(offset=1.0)
    clocks.exchange(0.5, 0.5)
    assert clocks.site.offset() == ClockOffset(1.0, 0.5)
    assert clocks.site.now().tzinfo is not None
