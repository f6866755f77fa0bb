"""The server's time at the site: the offset of the clocks, with its bound, from exchanges.

An exchange gives the offset to within half of its round trip (docs/reporter-protocol.md). Offsets are kept
against a clock that never jumps, and their bounds grow with age, by the largest drift of a clock.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone

DRIFT = 2e-4  # seconds per second: four times that of a bad quartz
_EXCHANGES = 8
_LATEST = 253_402_300_000.0  # the end of the year 9999, which datetime can show


def steady_seconds() -> float:
    """Return the seconds of a clock that never jumps and, on Linux, also runs while the host sleeps."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


@dataclass(frozen=True)
class ExchangeTimes:
    """The times of one exchange, in seconds.

    *sent* and *arrived* are by the steady clock of the site, *received* and *answered* by the server's clock,
    since 1970.
    """

    sent: float
    received: float
    answered: float
    arrived: float


@dataclass(frozen=True)
class ClockOffset:
    """The server's clock minus another clock, in seconds; the error is at most *bound_seconds*."""

    offset_seconds: float
    bound_seconds: float


@dataclass(frozen=True)
class ClockEstimate:
    """The server's clock minus the steady clock, in seconds; its bound is that *at* a steady time."""

    offset: float
    bound: float
    at: float

    def bound_at(self, steady: float) -> float:
        """Return the bound at *steady*: it grows by the drift of the clocks."""
        return self.bound + DRIFT * max(0.0, steady - self.at)

    def agrees_with(self, older: ClockEstimate) -> bool:
        """Return whether both can be true of clocks that were not set meanwhile."""
        return abs(older.offset - self.offset) <= older.bound_at(self.at) + self.bound


def estimate(times: ExchangeTimes) -> ClockOffset | None:
    """Return the offset of the server's clock to the site's steady clock.

    Return None if the times contradict each other (the answer left the server before the request came, or
    the server took longer than the whole exchange) or are no times.
    """
    took_server, took_all = times.answered - times.received, times.arrived - times.sent
    values = (times.sent, times.received, times.answered, times.arrived)
    if not all(map(math.isfinite, values)) or took_server < 0 or took_all < took_server:
        return None
    if not 0 <= times.received <= times.answered <= _LATEST:
        return None
    offset = ((times.received - times.sent) + (times.answered - times.arrived)) / 2
    return ClockOffset(offset, (took_all - took_server) / 2)


class SiteClock:
    """The time at the site: the wall clock, held within the bound of the server's time where it is known.

    Before the first exchange it is the wall clock alone. Later a wall clock that jumps cannot move it by more
    than the bound; after weeks without the server the bound has grown, and a wall clock that the site keeps
    right counts again. Thread-safe: an instance changes only by replacing its estimates.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = steady_seconds
    ) -> None:
        self._wall, self._steady = wall, steady
        self._estimates: deque[ClockEstimate] = deque(maxlen=_EXCHANGES)

    @property
    def is_known(self) -> bool:
        """Whether the server's time is known from an exchange."""
        return bool(self._estimates)

    def wall_seconds(self) -> float:
        return self._wall()

    def wall_now(self) -> datetime:
        """Return the time of the wall clock, in UTC. The site's policy goes by it: no server can move it."""
        return datetime.fromtimestamp(self._wall(), timezone.utc)

    def steady(self) -> float:
        return self._steady()

    def add(self, times: ExchangeTimes) -> None:
        """Learn from an exchange. Earlier ones that contradict it are forgotten: a clock was set."""
        found = estimate(times)
        if found is None:
            return
        new = ClockEstimate(found.offset_seconds, found.bound_seconds, times.arrived)
        consistent = [old for old in self._estimates if new.agrees_with(old)]
        self._estimates = deque([*consistent, new], _EXCHANGES)

    def now_seconds(self) -> float:
        """Return the time at the site, in seconds since 1970."""
        wall, best = self._wall(), self._best()
        if best is None:
            return wall
        steady = self._steady()
        server, bound = steady + best.offset, best.bound_at(steady)
        return min(max(wall, server - bound), server + bound)

    def server_seconds(self) -> float:
        """Return the most probable time of the server's clock; without an exchange, that of the site."""
        best = self._best()
        return self._wall() if best is None else self._steady() + best.offset

    def server_now(self) -> datetime:
        """Return ``server_seconds`` as a time, in UTC."""
        return datetime.fromtimestamp(self.server_seconds(), timezone.utc)

    def now(self) -> datetime:
        """Return the time at the site, in UTC."""
        return datetime.fromtimestamp(self.now_seconds(), timezone.utc)

    def offset(self) -> ClockOffset | None:
        """Return the server's clock minus the wall clock, or None before the first exchange."""
        best = self._best()
        if best is None:
            return None
        steady = self._steady()
        return ClockOffset(steady + best.offset - self._wall(), best.bound_at(steady))

    def _best(self) -> ClockEstimate | None:
        steady, estimates = self._steady(), self._estimates
        return min(estimates, key=lambda each: each.bound_at(steady), default=None)
