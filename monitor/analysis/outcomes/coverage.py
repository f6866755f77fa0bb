"""Decide which hours and days of a range are read as stored counts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def floor(time: datetime, unit: timedelta) -> datetime:
    """Return the start of the hour or day (UTC) of *time*."""
    return _EPOCH + (time - _EPOCH) // unit * unit


def ceiling(time: datetime, unit: timedelta) -> datetime:
    return _EPOCH - (_EPOCH - time) // unit * unit


class Span(NamedTuple):
    """The time from *start* until before *end*; none if they are equal."""

    start: datetime
    end: datetime

    def __bool__(self) -> bool:
        return self.start < self.end

    def hours_of(self, day: datetime) -> slice:
        """Return the hours of *day* that are at least in part in this span."""
        first, last = max(self.start, day), min(self.end, day + DAY)
        return slice((first - day) // HOUR, -((day - last) // HOUR))


@dataclass(frozen=True)
class Coverage:
    """A *range*, and the time that is *counted*: what is stored of an hour are its runs in this time."""

    range: Span
    counted: Span

    @property
    def hours(self) -> Span:
        """The time of which what is stored of each hour belongs to the range."""
        start = max(ceiling(self.range.start, HOUR), self.counted.start)
        is_after = self.range.end >= self.counted.end
        end = self.counted.end if is_after else floor(self.range.end, HOUR)
        return Span(start, end) if start < end else Span(self.range.end, self.range.end)

    @property
    def raw(self) -> tuple[Span, Span]:
        """The times before and after ``hours``, of which runs are read."""
        return Span(self.range.start, self.hours.start), Span(self.hours.end, self.range.end)

    @property
    def days(self) -> Span:
        """The whole days in ``hours``."""
        start, end = ceiling(self.hours.start, DAY), floor(self.hours.end, DAY)
        return Span(start, max(start, end))

    @property
    def edges(self) -> list[Span]:
        """The hours that are in no whole day."""
        if not self.days:
            return [self.hours]
        return [Span(self.hours.start, self.days.start), Span(self.days.end, self.hours.end)]

    @property
    def touched_days(self) -> Span:
        """The days, whole or not, that the range touches and of which hours are stored."""
        start = max(floor(self.range.start, DAY), floor(self.counted.start, DAY))
        end = min(ceiling(self.range.end, DAY), ceiling(self.counted.end, DAY))
        return Span(start, max(start, end)) if self.counted else Span(start, start)

    @property
    def raw_days(self) -> Span:
        """The days that the range touches before the stored hours; all of them, if none is stored."""
        start, end = floor(self.range.start, DAY), ceiling(self.range.end, DAY)
        end = min(end, self.counted.start) if self.counted else end
        return Span(start, max(start, end))
