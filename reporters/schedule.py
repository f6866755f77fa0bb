"""When a series is due: pure functions of (schedule, time).

A schedule is a cron expression (``reporters.cron``), the clock that it means, and when it begins and ends.
A slot is the instant at which the clock *first* shows a minute that the expression matches; where the clock
jumps over that minute, the next one that it does show. So a slot that does not exist is run once, one that
exists twice is run once, and what falls on the same instant is one slot.

Errors::

    InvalidSchedule       for good: it has to be written anew
    `-- NoZoneDatabase    again: once this machine has one
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import product
from typing import Callable

from reporters import cron
from reporters.cron import Cron, InvalidSchedule
from reporters.fields import shown

__all__ = ["InvalidSchedule", "NoZoneDatabase", "Schedule", "find_zone", "parse"]

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_NONE = timedelta()
# Inside what datetime can hold, so that every clock shows them, and there is a next month.
_EARLIEST = datetime(1, 1, 3, tzinfo=timezone.utc)
_LATEST = datetime(9999, 11, 28, tzinfo=timezone.utc)
_LONGEST_ZONE_CHARACTERS = 60


class NoZoneDatabase(InvalidSchedule):
    """This machine does not know any time zone but UTC."""


@dataclass(frozen=True)
class Schedule:
    """The slots of one series; made by ``parse``."""

    cron: Cron
    clock: tzinfo
    starts_at: datetime | None = None  # no slot is before it
    ends_at: datetime | None = None  # no slot is after it

    def slots(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The slots in (*after*, *until*], in order, each once, in UTC.

        Slots of adjoining windows are those of the whole. Raises ValueError for times without a zone.
        """
        after, until = self._bounded(after, until)
        times = _times_of_day(self.cron.hours, self.cron.minutes)
        # A clock that goes back over midnight may still show the day before when the next one has begun.
        for midnight in self.cron.matching_days(self._midnight(after), self._midnight(until) + _DAY):
            due = self._due(midnight, times, after, until)
            if due:
                yield from due
                after = due[-1]  # what a clock jumped over yesterday may be due at this midnight

    def next_after(self, after: datetime) -> datetime | None:
        """The first slot after *after*, in UTC; None if there is none before the schedule's end."""
        return next(self.slots(after, _LATEST), None)

    def _bounded(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        for time in (after, until):
            if time.utcoffset() is None:
                raise ValueError(f"a time without a zone: {time!r}")
        if self.starts_at:
            after = max(after, _shown_by_all(self.starts_at) - timedelta.resolution)
        return _shown_by_all(after), _shown_by_all(min(until, self.ends_at or _LATEST))

    def _midnight(self, time: datetime) -> datetime:
        """Of the day that the clock shows at *time*, without a zone."""
        local = time.astimezone(self.clock)
        return datetime(local.year, local.month, local.day)  # noqa: DTZ001 - what a clock shows has no zone

    def _due(
        self, midnight: datetime, times: tuple[timedelta, ...], after: datetime, until: datetime
    ) -> list[datetime]:
        offset = _offset(self.clock, midnight)
        # With fold=1: the later offset if the next midnight is itself one that does not exist, or twice.
        if offset != _offset(self.clock, (midnight + _DAY).replace(fold=1)):
            return [time for time in _first_shown(self.clock, midnight, times) if after < time <= until]
        start = midnight.replace(tzinfo=timezone.utc) - offset
        first, end = bisect_right(times, after - start), bisect_right(times, until - start)
        return [start + time for time in times[first:end]]


def parse(
    expression: str,
    *,
    name: str,
    zone: str = "UTC",
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    read: Callable[[str, str], Cron] = cron.parse,
) -> Schedule:
    """Return the schedule of the series *name*; *read* understands (expression, name).

    Raises:
        InvalidSchedule: an expression that cannot be read or never matches, a zone that there is not, a time
            without a zone, an end before the start.
    """
    for what, time in (("starts_at", starts_at), ("ends_at", ends_at)):
        if time is not None and time.utcoffset() is None:
            raise InvalidSchedule(f"{what}: expected a time with a zone, got {time.isoformat()}")
    if starts_at and ends_at and ends_at < starts_at:
        raise InvalidSchedule(f"ends_at {ends_at.isoformat()} is before starts_at {starts_at.isoformat()}")
    return Schedule(read(expression, name), find_zone(zone), starts_at, ends_at)


def find_zone(name: str) -> tzinfo:
    """The clock of an IANA time zone.

    Raises:
        InvalidSchedule: there is no such zone; says which was probably meant.
        NoZoneDatabase: no zone can be found.
    """
    if name == "UTC":
        return timezone.utc  # always there
    if not _zone_names():
        places = ", ".join(zoneinfo.TZPATH) or "nowhere: PYTHONTZPATH is empty"
        raise NoZoneDatabase(
            f"time zone {shown(name)}: this machine has no time zone database (looked in {places}); "
            "install the package tzdata, of the distribution or of Python"
        )
    if name not in _zone_names():
        raise InvalidSchedule(f"time zone {shown(name)}: expected an IANA name{_nearest_zone(name)}")
    return zoneinfo.ZoneInfo(name)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - {"localtime"})  # localtime is another one elsewhere


def _nearest_zone(name: str) -> str:
    cities = [zone for zone in sorted(_zone_names()) if zone.lower().endswith(f"/{name.lower()}")]
    return cron.nearest(name[:_LONGEST_ZONE_CHARACTERS], cities or sorted(_zone_names()))


@lru_cache(maxsize=4096)
def _times_of_day(hours: tuple[int, ...], minutes: tuple[int, ...]) -> tuple[timedelta, ...]:
    return tuple(timedelta(hours=hour, minutes=minute) for hour, minute in product(hours, minutes))


def _first_shown(clock: tzinfo, midnight: datetime, times: tuple[timedelta, ...]) -> list[datetime]:
    """The instants at which *clock* first shows *times* of that day, or jumps over them."""
    found: list[datetime] = []
    local = midnight
    for time in times:
        local = max(local, midnight + time)  # minutes that were passed over are not gone through again
        while _never_shown(clock, local):
            local += _MINUTE
        instant = local.replace(tzinfo=timezone.utc) - _offset(clock, local)
        if not found or instant > found[-1]:
            found.append(instant)
    return found


def _never_shown(clock: tzinfo, local: datetime) -> bool:
    """PEP 495: in a gap fold=0 has the offset from before it, fold=1 the one from after, which is larger."""
    return _offset(clock, local) < _offset(clock, local.replace(fold=1))


def _shown_by_all(time: datetime) -> datetime:
    return min(max(time, _EARLIEST), _LATEST)


def _offset(clock: tzinfo, local: datetime) -> timedelta:
    return clock.utcoffset(local) or _NONE  # no zone of IANA leaves it open
