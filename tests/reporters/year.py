"""A simulated year: the slots of many series on the clocks of all zones, judged by ``clockwork``."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import numpy as np

from reporters.schedule import Schedule, find_zone, parse
from tests.reporters import clockwork
from tests.reporters.clockwork import Minutes

BEGINS = datetime(2026, 1, 1, tzinfo=UTC)
ENDS = datetime(2027, 1, 1, tzinfo=UTC)  # wherever clocks are changed at all, they are twice in between
BEFORE = clockwork.minute(BEGINS) - clockwork.DAY_MINUTES
MIX = ("@hourly", "H/30 * * * *", "@daily", "*/20 0-3 * * *", "H H * * H")


@dataclass(frozen=True)
class Planned:
    name: str
    zone: str
    expression: str
    window: timedelta  # how far ahead it is expanded at a time

    def schedule(self) -> Schedule:
        return parse(self.expression, name=self.name, zone=self.zone)


def zones() -> list[str]:
    return sorted(zoneinfo.available_timezones() - {"localtime"})


def planned(count: int) -> Iterator[Planned]:
    """Series over all zones, zone by zone; windows of 1 to 13 days, which end at any minute of the day."""
    names = zones()
    for number in range(count):
        window = timedelta(days=1 + number % 13, minutes=number % 977)
        zone = names[number * len(names) // count]
        yield Planned(f"series-{number}", zone, MIX[number % len(MIX)], window)


def expanded(series: Planned) -> Minutes:
    """All slots of the year, as minutes of UTC in the order in which they came, window by window."""
    schedule = series.schedule()
    found: list[float] = []
    after = BEGINS
    while after < ENDS:
        until = min(after + series.window, ENDS)
        found += [slot.timestamp() for slot in schedule.slots(after, until)]
        after = until
    return (np.array(found) / 60).astype(np.int64)


def expected(series: Planned) -> Minutes:
    plain = series.schedule().cron.text
    local = clockwork.local_times(plain, BEFORE, clockwork.minute(ENDS) + clockwork.DAY_MINUTES)
    return clockwork.due_by(_latest_shown(find_zone(series.zone)), local, BEGINS, ENDS)


@lru_cache(maxsize=1)  # series come zone by zone
def _latest_shown(clock: tzinfo) -> Minutes:
    return clockwork.latest_shown(clock, BEFORE, clockwork.minute(ENDS))
