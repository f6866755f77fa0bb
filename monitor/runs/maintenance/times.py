"""Compute when a maintenance window is open, with pure functions of (times, now).

A window occurs once, or at every slot of a schedule (``reporters.schedule``). An occurrence is open from its
start until just before its end; its duration is elapsed time, whatever the clocks do meanwhile. The duration
is never longer than the gap to the next slot; where a change of clocks makes two occurrences overlap
nevertheless, the window stays open until the later one ends.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from reporters.fields import shown
from reporters.schedule import InvalidSchedule, Schedule, find_zone, parse_schedule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from reporters.cron import Cron

MAX_DURATION_SECONDS = 31_536_000  # a year
MAX_OPENINGS_A_DAY = 24  # pages, feeds and statistics expand months and years of them
_MINUTES_PER_DAY = 24 * 60
_DAYS_BACK = (1, 8, 32, 366)  # in which to look for the last occurrence
YEAR = timedelta(days=_DAYS_BACK[-1])
# Schedules are evaluated on these days to find the shortest gap: longer than any gap between leap days.
_FIRST_DAY, _LAST_DAY = datetime(2000, 1, 1), datetime(2012, 12, 31)  # noqa: DTZ001 - in any time zone


@dataclass(frozen=True)
class WindowTimes:
    """The configured times of a window: one occurrence from *starts_at* to *ends_at*, or a schedule.

    If there is a schedule, *starts_at* and *ends_at* bound its slots.
    """

    starts_at: datetime | None = None
    ends_at: datetime | None = None
    schedule: str = ""
    timezone: str = "UTC"
    duration_seconds: int | None = None


@dataclass(frozen=True)
class Occurrence:
    """One opening of a window: from *starts_at* on, until just before *ends_at*."""

    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True)
class OpenWindow:
    """A maintenance window that is open at *sites* (empty: at every site)."""

    title: str
    starts_at: datetime
    ends_at: datetime
    sites: frozenset[str] = frozenset()

    def covers(self, sites: Collection[str]) -> bool:
        return not self.sites or not self.sites.isdisjoint(sites)

    @property
    def reason(self) -> str:
        """The reason of a run that the window skips: ``maintenance: disks, until 2026-03-01 13:00 UTC``."""
        return f"maintenance: {self.title}, until {self.ends_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def open_at(times: WindowTimes, now: datetime) -> Occurrence | None:
    """Return the occurrence that is open at *now*; if several are open, the one that ends last.

    Raises:
        InvalidSchedule: the schedule cannot be parsed.
    """
    if not times.schedule:
        single = _single(times)
        return single if single and single.starts_at <= now < single.ends_at else None
    duration = _duration(times)
    last_slot = deque(_schedule(times).slots(now - duration, now), maxlen=1)
    return Occurrence(last_slot[0], last_slot[0] + duration) if last_slot else None


def next_after(times: WindowTimes, now: datetime) -> Occurrence | None:
    """Return the first occurrence that starts after *now*; None if no further occurrence starts.

    Raises:
        InvalidSchedule: the schedule cannot be parsed.
    """
    if not times.schedule:
        single = _single(times)
        return single if single and single.starts_at > now else None
    slot = _schedule(times).next_after(now)
    return None if slot is None else Occurrence(slot, slot + _duration(times))


def next_occurrences(times: WindowTimes, now: datetime, most: int) -> list[Occurrence]:
    """Return the occurrence that is open at *now*, if one is, and those that follow, at most *most*.

    Raises:
        InvalidSchedule: the schedule cannot be parsed.
    """
    current = open_at(times, now)
    found = [current] if current else []
    after = now
    while len(found) < most:
        following = next_after(times, after)
        if following is None:
            break
        found.append(following)
        after = following.starts_at
    return found


def end_before(times: WindowTimes, now: datetime) -> datetime | None:
    """Return the end of the last occurrence that ended at *now* or within the year before; None without one.

    Raises:
        InvalidSchedule: the schedule cannot be parsed.
    """
    if not times.schedule:
        single = _single(times)
        return single.ends_at if single and now - YEAR < single.ends_at <= now else None
    duration = _duration(times)
    for days in _DAYS_BACK:  # most schedules have a slot every day or week
        slots = _schedule(times).slots(now - duration - timedelta(days=days), now - duration)
        if last_slot := deque(slots, maxlen=1):
            return last_slot[0] + duration
    return None


def occurrences(times: WindowTimes, since: datetime, until: datetime) -> Iterator[Occurrence]:
    """Yield the occurrences that are open at some time in [*since*, *until*), in order; join those that meet.

    Raises:
        InvalidSchedule: the schedule cannot be parsed.
    """
    if not times.schedule:
        single = _single(times)
        if single and single.starts_at < until and single.ends_at > since:
            yield single
        return
    duration = _duration(times)
    starts_at = ends_at = None
    for slot in _schedule(times).slots(since - duration, until - timedelta.resolution):
        if starts_at is not None and ends_at is not None and slot > ends_at:
            yield Occurrence(starts_at, ends_at)
            starts_at = None
        starts_at, ends_at = starts_at or slot, slot + duration
    if starts_at is not None and ends_at is not None:
        yield Occurrence(starts_at, ends_at)


def time_errors(times: WindowTimes) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each error in *times*."""
    yield from _recurring_errors(times) if times.schedule else _single_errors(times)
    try:
        find_zone(times.timezone)
    except InvalidSchedule as error:
        yield "timezone", str(error)
    if times.starts_at and times.ends_at and times.ends_at <= times.starts_at:
        yield (
            "ends_at",
            f"{times.ends_at.isoformat()} is not after starts_at {times.starts_at.isoformat()}",
        )


def _single_errors(times: WindowTimes) -> Iterator[tuple[str, str]]:
    missing = [key for key in ("starts_at", "ends_at") if getattr(times, key) is None]
    if times.duration_seconds is not None:
        yield "schedule", "it is missing; expected one, because there is duration_seconds"
    elif missing:
        yield (
            missing[0],
            "it is missing; expected starts_at and ends_at, or schedule and duration_seconds",
        )


def _recurring_errors(times: WindowTimes) -> Iterator[tuple[str, str]]:
    seconds = times.duration_seconds
    if seconds is None:
        yield (
            "duration_seconds",
            "it is missing; expected the duration of each occurrence, because there is a schedule",
        )
    elif not 1 <= seconds <= MAX_DURATION_SECONDS:
        yield "duration_seconds", f"expected 1 to {MAX_DURATION_SECONDS:,}, got {seconds}"
    try:
        cron = parse_schedule(times.schedule, "").cron
    except InvalidSchedule as error:
        yield "schedule", str(error)
        return
    if cron.text != " ".join(times.schedule.upper().split()):
        hint = "expected numbers, because windows are announced; H, ? and names such as @daily are hashed"
        yield "schedule", f"schedule {shown(times.schedule)}: {hint}"
        return
    openings = len(cron.hours) * len(cron.minutes)
    if openings > MAX_OPENINGS_A_DAY:
        yield (
            "schedule",
            f"schedule {shown(times.schedule)} opens the window {openings:,} times a day; expected at most "
            f"{MAX_OPENINGS_A_DAY}, with a longer duration",
        )
        return
    gaps = _gaps(cron)
    if gaps is not None and _duration(times) >= gaps.longest:
        yield (
            "duration_seconds",
            f"{seconds} s, but an occurrence starts every {gaps.longest.total_seconds():.0f} s: the window "
            "would always be open; give starts_at and ends_at without a schedule",
        )
    elif gaps is not None and _duration(times) > gaps.shortest:
        yield (
            "duration_seconds",
            f"{seconds} s, but the next occurrence starts after {gaps.shortest.total_seconds():.0f} s",
        )


class _Gaps(NamedTuple):
    shortest: timedelta
    longest: timedelta


@lru_cache(maxsize=1024)  # reads 13 years of days; many windows share a schedule
def _gaps(cron: Cron) -> _Gaps | None:
    """Return the extremes of the time between two slots, ignoring changes of clocks; None without two."""
    minutes = [60 * hour + minute for hour in cron.hours for minute in cron.minutes]
    gaps = [later - earlier for earlier, later in pairwise(minutes)]
    days = [(later - earlier).days for earlier, later in pairwise(cron.matching_days(_FIRST_DAY, _LAST_DAY))]
    gaps += [each * _MINUTES_PER_DAY + minutes[0] - minutes[-1] for each in set(days)]
    return _Gaps(timedelta(minutes=min(gaps)), timedelta(minutes=max(gaps))) if gaps else None


def _single(times: WindowTimes) -> Occurrence | None:
    if times.starts_at is None or times.ends_at is None:
        return None
    return Occurrence(times.starts_at, times.ends_at)


def _duration(times: WindowTimes) -> timedelta:
    return timedelta(seconds=times.duration_seconds or 0)


@lru_cache(maxsize=1024)  # every tick needs the schedules of all windows
def _schedule(times: WindowTimes) -> Schedule:
    return parse_schedule(
        times.schedule, "", zone=times.timezone, starts_at=times.starts_at, ends_at=times.ends_at
    )
