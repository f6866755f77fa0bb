"""Read when planned work is: one window, or one at every slot of a schedule. Pure functions of (times, now).

A window is open from its start or slot on, until its end or for so many seconds, whatever clocks do
meanwhile; it is over at its end. Slots are those of ``reporters.schedule``: one that clocks jump over is at
the next minute, one that they show twice is at the first. Windows of a schedule are no longer than it takes
to the next one. Where a change of clocks makes two overlap nevertheless, work goes on until the later ends.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from reporters.fields import shown
from reporters.schedule import InvalidSchedule, Schedule, find_zone, parse_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reporters.cron import Cron

MAX_DURATION_SECONDS = 31_536_000  # a year
_MINUTES_A_DAY = 24 * 60
# Days on which schedules are tried: the longest that a leap day keeps us waiting, and more.
_FIRST_DAY, _LAST_DAY = datetime(2000, 1, 1), datetime(2012, 12, 31)  # noqa: DTZ001 - of any clock


@dataclass(frozen=True)
class WindowTimes:
    """When work is, as it was set up. With a schedule, *starts_at* and *ends_at* bound when windows begin."""

    starts_at: datetime | None = None
    ends_at: datetime | None = None
    schedule: str = ""
    timezone: str = "UTC"
    duration_seconds: int | None = None


@dataclass(frozen=True)
class Occurrence:
    """One window: from *starts_at* on, until just before *ends_at*."""

    starts_at: datetime
    ends_at: datetime


def open_at(times: WindowTimes, now: datetime) -> Occurrence | None:
    """The window that is open at *now*; if several, the one that ends last.

    Raises:
        InvalidSchedule: the schedule cannot be read.
    """
    if not times.schedule:
        return next((span for span in _once(times) if span.starts_at <= now < span.ends_at), None)
    length = _length(times)
    newest = deque(_schedule(times).slots(now - length, now), maxlen=1)
    return Occurrence(newest[0], newest[0] + length) if newest else None


def next_after(times: WindowTimes, now: datetime) -> Occurrence | None:
    """The first window that begins after *now*; None if there is none. Raises as ``open_at``."""
    if not times.schedule:
        return next((span for span in _once(times) if span.starts_at > now), None)
    slot = _schedule(times).next_after(now)
    return None if slot is None else Occurrence(slot, slot + _length(times))


def time_errors(times: WindowTimes) -> Iterator[tuple[str, str]]:
    """What is wrong with *times*, each by the name of the value at fault."""
    yield from _of_schedule(times) if times.schedule else _of_one_window(times)
    try:
        find_zone(times.timezone)
    except InvalidSchedule as error:
        yield "timezone", str(error)
    if times.starts_at and times.ends_at and times.ends_at <= times.starts_at:
        yield (
            "ends_at",
            f"{times.ends_at.isoformat()} is not after starts_at {times.starts_at.isoformat()}",
        )


def _of_one_window(times: WindowTimes) -> Iterator[tuple[str, str]]:
    missing = [key for key in ("starts_at", "ends_at") if getattr(times, key) is None]
    if times.duration_seconds is not None:
        yield "schedule", "it is missing; expected one, because there is duration_seconds"
    elif missing:
        yield (
            missing[0],
            "it is missing; expected starts_at and ends_at, or schedule and duration_seconds",
        )


def _of_schedule(times: WindowTimes) -> Iterator[tuple[str, str]]:
    seconds = times.duration_seconds
    if seconds is None:
        yield (
            "duration_seconds",
            "it is missing; expected how long each window is, because there is a schedule",
        )
    elif not 1 <= seconds <= MAX_DURATION_SECONDS:
        yield "duration_seconds", f"expected 1 to {MAX_DURATION_SECONDS:,}, got {seconds}"
    try:
        cron = parse_schedule(times.schedule, "").cron
    except InvalidSchedule as error:
        yield "schedule", str(error)
        return
    if cron.text != " ".join(times.schedule.upper().split()):
        why = "expected numbers, since people are told when work begins; H, ? and names as @daily are hashed"
        yield "schedule", f"schedule {shown(times.schedule)}: {why}"
        return
    gap = _shortest_gap(cron)
    if gap is not None and _length(times) > gap:
        yield "duration_seconds", f"{seconds} s, but the next window begins after {gap.total_seconds():.0f} s"


def _shortest_gap(cron: Cron) -> timedelta | None:
    """Between two slots, while no clock is changed; None where they are years apart."""
    times = [60 * hour + minute for hour in cron.hours for minute in cron.minutes]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    days = [(later - earlier).days for earlier, later in pairwise(cron.matching_days(_FIRST_DAY, _LAST_DAY))]
    gaps += [min(days) * _MINUTES_A_DAY + times[0] - times[-1]] if days else []
    return timedelta(minutes=min(gaps)) if gaps else None


def _once(times: WindowTimes) -> Iterator[Occurrence]:
    if times.starts_at is not None and times.ends_at is not None:
        yield Occurrence(times.starts_at, times.ends_at)


def _length(times: WindowTimes) -> timedelta:
    return timedelta(seconds=times.duration_seconds or 0)


@lru_cache(maxsize=1024)  # asked at every tick
def _schedule(times: WindowTimes) -> Schedule:
    return parse_schedule(
        times.schedule, "", zone=times.timezone, starts_at=times.starts_at, ends_at=times.ends_at
    )
