"""Incidents on a calendar: those of each day of a month, in the time zone of the reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Q

if TYPE_CHECKING:
    from monitor.models.incident import IncidentQuerySet

MOST_A_DAY = 24  # incidents that a day lists
_DAY = timedelta(days=1)


class IncidentSpan(NamedTuple):
    """From when to when the incident with the primary key *incident* was open; None: it is."""

    incident: int
    since: datetime
    resolved_at: datetime | None


@dataclass(frozen=True)
class CalendarDay:
    """A day with the primary keys of the incidents that were open on it, the oldest first.

    *begins* are those that began on this day.
    """

    day: date
    is_in_month: bool
    is_today: bool
    incidents: Sequence[int]
    begins: frozenset[int]

    @property
    def listed(self) -> Sequence[int]:
        return self.incidents[:MOST_A_DAY]

    @property
    def more(self) -> int:
        """How many incidents of the day are not listed."""
        return len(self.incidents) - len(self.listed)


@dataclass(frozen=True)
class IncidentMonth:
    """The weeks of the month that *first* begins, each from Monday to Sunday."""

    first: date
    weeks: Sequence[Sequence[CalendarDay]]

    @property
    def previous(self) -> date:
        return (self.first - _DAY).replace(day=1)

    @property
    def following(self) -> date:
        return (self.first + 31 * _DAY).replace(day=1)

    @property
    def incidents(self) -> int:
        """How many incidents were open in the month."""
        days = [day for week in self.weeks for day in week if day.is_in_month]
        return len({incident for day in days for incident in day.incidents})

    @property
    def listed(self) -> set[int]:
        """The primary keys of the incidents that some day lists."""
        return {incident for week in self.weeks for day in week for incident in day.listed}


def first_of_month(text: str, today: date) -> date:
    """Return the first day of the month *text*, such as ``2026-03``; of *today*'s for any other text."""
    try:
        year, month = (int(part) for part in text.split("-"))
        chosen = date(year, month, 1)
    except (ValueError, OverflowError):
        return today.replace(day=1)
    return chosen if 1970 <= chosen.year < 2200 else today.replace(day=1)


def spans_during(incidents: IncidentQuerySet, first: date, zone: tzinfo) -> list[IncidentSpan]:
    """Return those of *incidents* that were open in the weeks of the month from *first* on, oldest first."""
    monday, end = _bounds(first)
    start_at, end_at = (datetime.combine(day, time.min, zone) for day in (monday, end))
    rows = incidents.filter(since__lt=end_at).filter(Q(resolved_at=None) | Q(resolved_at__gte=start_at))
    columns = rows.order_by("since", "pk").values_list("pk", "since", "resolved_at")
    return [IncidentSpan(*row) for row in columns]


def month_of(incidents: Iterable[IncidentSpan], first: date, zone: tzinfo, now: datetime) -> IncidentMonth:
    """Return the month from *first* on with *incidents*; an open incident lasts until *now*. Pure."""
    monday, end = _bounds(first)
    today, length = now.astimezone(zone).date(), (end - monday).days
    is_open: list[list[int]] = [[] for _ in range(length)]  # by day
    begins: list[set[int]] = [set() for _ in range(length)]
    for key, since, resolved_at in incidents:
        began, ended = ((at.astimezone(zone).date() - monday).days for at in (since, resolved_at or now))
        for number in range(max(began, 0), min(ended + 1, length)):
            is_open[number].append(key)
        if 0 <= began < length:
            begins[began].add(key)
    days = [
        CalendarDay(day, day.month == first.month, day == today, is_open[number], frozenset(begins[number]))
        for number in range(length)
        for day in [monday + number * _DAY]
    ]
    return IncidentMonth(first, [days[at : at + 7] for at in range(0, len(days), 7)])


def _bounds(first: date) -> tuple[date, date]:
    """Return the Monday on or before *first*, and the Monday after the month that it begins."""
    last = (first + 31 * _DAY).replace(day=1) - _DAY
    return first - first.weekday() * _DAY, last + (7 - last.weekday()) * _DAY
