"""Incidents on a calendar: those of each day of a month, in the time zone of the reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING

from django.db.models import Q

from monitor.models import Incident

if TYPE_CHECKING:
    from monitor.models.incident import IncidentQuerySet

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class CalendarDay:
    """A day with the incidents that were open on it; *begins* tells for each whether it began on this day."""

    day: date
    is_in_month: bool
    is_today: bool
    incidents: Sequence[tuple[Incident, bool]]


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
        return len({incident.pk for day in days for incident, _ in day.incidents})


def first_of_month(text: str, today: date) -> date:
    """Return the first day of the month *text*, such as ``2026-03``; of *today*'s for any other text."""
    try:
        year, month = (int(part) for part in text.split("-"))
        chosen = date(year, month, 1)
    except (ValueError, OverflowError):
        return today.replace(day=1)
    return chosen if 1970 <= chosen.year < 2200 else today.replace(day=1)


def during(incidents: IncidentQuerySet, first: date, zone: tzinfo) -> list[Incident]:
    """Return those of *incidents* that were open in the weeks of the month from *first* on, oldest first."""
    monday, end = _bounds(first)
    start_at, end_at = (datetime.combine(day, time.min, zone) for day in (monday, end))
    rows = incidents.filter(since__lt=end_at).filter(Q(resolved_at=None) | Q(resolved_at__gte=start_at))
    return list(rows.select_related("signature").order_by("since", "pk"))


def month_of(incidents: Iterable[Incident], first: date, zone: tzinfo, now: datetime) -> IncidentMonth:
    """Return the month from *first* on with *incidents*; an open incident lasts until *now*. Pure."""
    spans = [
        (each, each.since.astimezone(zone).date(), (each.resolved_at or now).astimezone(zone).date())
        for each in incidents
    ]
    monday, end = _bounds(first)
    today = now.astimezone(zone).date()
    days = [
        CalendarDay(
            day,
            day.month == first.month,
            day == today,
            [(incident, began == day) for incident, began, ended in spans if began <= day <= ended],
        )
        for day in (monday + number * _DAY for number in range((end - monday).days))
    ]
    return IncidentMonth(first, [days[at : at + 7] for at in range(0, len(days), 7)])


def _bounds(first: date) -> tuple[date, date]:
    """Return the Monday on or before *first*, and the Monday after the month that it begins."""
    last = (first + 31 * _DAY).replace(day=1) - _DAY
    return first - first.weekday() * _DAY, last + (7 - last.weekday()) * _DAY
