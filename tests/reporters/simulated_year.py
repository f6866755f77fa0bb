"""A simulated year: the slots of many series in all time zones, compared with ``slot_oracle``."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import numpy as np

from reporters.schedule import Schedule, find_zone, parse_schedule
from tests.reporters import slot_oracle
from tests.reporters.slot_oracle import Minutes

BEGINS = datetime(2026, 1, 1, tzinfo=UTC)
ENDS = datetime(2027, 1, 1, tzinfo=UTC)  # a zone that changes its clocks does so twice in between
BEFORE = slot_oracle.minute(BEGINS) - slot_oracle.DAY_MINUTES
EXPRESSIONS = ("@hourly", "H/30 * * * *", "@daily", "*/20 0-3 * * *", "H H * * H")


@dataclass(frozen=True)
class SimulatedSeries:
    name: str
    zone: str
    expression: str
    window: timedelta  # how far ahead each expansion goes

    def schedule(self) -> Schedule:
        return parse_schedule(self.expression, self.name, zone=self.zone)


def zones() -> list[str]:
    return sorted(zoneinfo.available_timezones() - {"localtime"})


def simulated_series(count: int) -> Iterator[SimulatedSeries]:
    """Yield series zone by zone, with windows of 1 to 13 days that end at any minute of the day."""
    names = zones()
    for number in range(count):
        window = timedelta(days=1 + number % 13, minutes=number % 977)
        zone = names[number * len(names) // count]
        yield SimulatedSeries(f"series-{number}", zone, EXPRESSIONS[number % len(EXPRESSIONS)], window)


def expanded(series: SimulatedSeries) -> Minutes:
    """Return all slots of the year, in minutes of UTC, in the order of their expansion window by window."""
    schedule = series.schedule()
    seconds: list[float] = []
    after = BEGINS
    while after < ENDS:
        until = min(after + series.window, ENDS)
        seconds += [slot.timestamp() for slot in schedule.slots(after, until)]
        after = until
    return (np.array(seconds) / 60).astype(np.int64)


def expected(series: SimulatedSeries) -> Minutes:
    plain = series.schedule().cron.text
    local = slot_oracle.local_times(plain, BEFORE, slot_oracle.minute(ENDS) + slot_oracle.DAY_MINUTES)
    return slot_oracle.due_by(_latest_shown(find_zone(series.zone)), local, BEGINS, ENDS)


@lru_cache(maxsize=1)  # series come zone by zone
def _latest_shown(clock: tzinfo) -> Minutes:
    return slot_oracle.latest_shown(clock, BEFORE, slot_oracle.minute(ENDS))
