"""Slots of a series: pure functions of (schedule, time).

A schedule is a cron expression (``reporters.cron``), the time zone to which it applies, and an optional start
and end. A slot is the instant at which the zone's clock *first* shows a minute that the expression matches.
If the clock skips such a minute, the slot is the next minute that the clock shows. So a skipped minute and a
minute that is shown twice have one slot each, and matches that fall on the same instant are one slot.

Errors::

    InvalidSchedule       permanent: the schedule has to be changed
    `-- NoZoneDatabase    temporary: until this machine has a time zone database
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import product

from reporters.cron import Cron, InvalidSchedule, parse_cron, suggestion
from reporters.fields import shown

__all__ = ["InvalidSchedule", "NoZoneDatabase", "Schedule", "find_zone", "parse_schedule"]

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_NO_OFFSET = timedelta()
# Within datetime's range by a margin: every zone can show these instants, and each has a next month.
_EARLIEST = datetime(1, 1, 3, tzinfo=timezone.utc)
_LATEST = datetime(9999, 11, 28, tzinfo=timezone.utc)
_LONGEST_ZONE_CHARACTERS = 60


class NoZoneDatabase(InvalidSchedule):
    """This machine knows no time zone but UTC."""


@dataclass(frozen=True)
class Schedule:
    """The schedule of one series, made by ``parse_schedule``."""

    cron: Cron
    clock: tzinfo
    starts_at: datetime | None = None  # inclusive
    ends_at: datetime | None = None  # inclusive

    def slots(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the slots in (*after*, *until*] in order, in UTC.

        Calls for adjoining ranges together yield each slot exactly once. Raises ValueError for times without
        a zone.
        """
        after, until = self._bounded(after, until)
        times = _times_of_day(self.cron.hours, self.cron.minutes)
        # One day more: a clock set back across midnight shows the old day again after the new one has begun.
        for midnight in self.cron.matching_days(self._midnight(after), self._midnight(until) + _DAY):
            due = self._due(midnight, times, after, until)
            if due:
                yield from due
                after = due[-1]  # a minute that the clock skipped yesterday may fall on this midnight

    def next_after(self, after: datetime) -> datetime | None:
        """Return the first slot after *after*, in UTC; None if the schedule has no further slot."""
        return next(self.slots(after, _LATEST), None)

    def _bounded(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        for time in (after, until):
            if time.utcoffset() is None:
                raise ValueError(f"expected a time with a zone, got {time!r}")
        if self.starts_at:
            after = max(after, _clamped(self.starts_at) - timedelta.resolution)
        return _clamped(after), _clamped(min(until, self.ends_at or _LATEST))

    def _midnight(self, time: datetime) -> datetime:
        """Return the midnight, without a zone, of the local day that contains *time*."""
        local = time.astimezone(self.clock)
        return datetime(local.year, local.month, local.day)  # noqa: DTZ001 - a local wall-clock time

    def _due(
        self, midnight: datetime, times: tuple[timedelta, ...], after: datetime, until: datetime
    ) -> list[datetime]:
        offset = _offset(self.clock, midnight)
        # fold=1 gives the later offset where the next midnight does not exist, or exists twice.
        if offset != _offset(self.clock, (midnight + _DAY).replace(fold=1)):
            return [time for time in _first_shown(self.clock, midnight, times) if after < time <= until]
        start = midnight.replace(tzinfo=timezone.utc) - offset
        first, end = bisect_right(times, after - start), bisect_right(times, until - start)
        return [start + time for time in times[first:end]]


def parse_schedule(
    expression: str,
    name: str,
    *,
    zone: str = "UTC",
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> Schedule:
    """Return the schedule of the series *name*; *expression* is cron, *zone* an IANA name.

    Raises:
        InvalidSchedule: the expression is malformed or never matches, the zone is unknown, a time has no
            zone, or the end is before the start.
    """
    for field, time in (("starts_at", starts_at), ("ends_at", ends_at)):
        if time is not None and time.utcoffset() is None:
            raise InvalidSchedule(f"{field}: expected a time with a zone, got {time.isoformat()}")
    if starts_at and ends_at and ends_at < starts_at:
        raise InvalidSchedule(f"ends_at {ends_at.isoformat()} is before starts_at {starts_at.isoformat()}")
    return Schedule(parse_cron(expression, name), find_zone(zone), starts_at, ends_at)


def find_zone(name: str) -> tzinfo:
    """Return the clock of an IANA time zone.

    Raises:
        InvalidSchedule: the zone is unknown; the message suggests the most similar name.
        NoZoneDatabase: this machine has no time zone database.
    """
    if name == "UTC":
        return timezone.utc  # needs no database
    import zoneinfo  # noqa: PLC0415  # with sysconfig a megabyte, which agents with schedules in UTC do without

    if not _zone_names():
        searched = ", ".join(zoneinfo.TZPATH) or "nowhere: PYTHONTZPATH is empty"
        raise NoZoneDatabase(
            f"time zone {shown(name)}: this machine has no time zone database (searched: {searched}); "
            "install the package tzdata, of the distribution or of Python"
        )
    if name not in _zone_names():
        raise InvalidSchedule(f"time zone {shown(name)}: expected an IANA name{_suggested_zone(name)}")
    return zoneinfo.ZoneInfo(name)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    import zoneinfo  # noqa: PLC0415

    return frozenset(zoneinfo.available_timezones() - {"localtime"})  # localtime differs between machines


def _suggested_zone(name: str) -> str:
    cities = [zone for zone in sorted(_zone_names()) if zone.lower().endswith(f"/{name.lower()}")]
    return suggestion(name[:_LONGEST_ZONE_CHARACTERS], cities or sorted(_zone_names()))


@lru_cache(maxsize=4096)
def _times_of_day(hours: tuple[int, ...], minutes: tuple[int, ...]) -> tuple[timedelta, ...]:
    return tuple(timedelta(hours=hour, minutes=minute) for hour, minute in product(hours, minutes))


def _first_shown(clock: tzinfo, midnight: datetime, times: tuple[timedelta, ...]) -> list[datetime]:
    """Return the slots, in UTC, of *times* since *midnight* of one day.

    A slot is the first instant at which *clock* shows the time, or the next minute if *clock* skips the time.
    """
    instants: list[datetime] = []
    local = midnight
    for time in times:
        local = max(local, midnight + time)  # never back to minutes already searched
        while _is_skipped(clock, local):
            local += _MINUTE
        instant = local.replace(tzinfo=timezone.utc) - _offset(clock, local)
        if not instants or instant > instants[-1]:
            instants.append(instant)
    return instants


def _is_skipped(clock: tzinfo, local: datetime) -> bool:
    """Return whether *clock* never shows *local*.

    PEP 495: in a gap, fold=0 has the offset before the gap and fold=1 the larger offset after the gap.
    """
    return _offset(clock, local) < _offset(clock, local.replace(fold=1))


def _clamped(time: datetime) -> datetime:
    return min(max(time, _EARLIEST), _LATEST)


def _offset(clock: tzinfo, local: datetime) -> timedelta:
    return clock.utcoffset(local) or _NO_OFFSET  # None is only for the type checker: IANA zones have one
