"""Write maintenance windows as an iCalendar file (RFC 5545).

Recurring windows are written as their single occurrences: a cron expression has no equal among the rules of
RFC 5545.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, timedelta
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from icalendar import Calendar, Event

from monitor.runs.maintenance.import_feed import horizon_at
from monitor.runs.maintenance.times import Occurrence, occurrences
from monitor.runs.maintenance.windows import times_of, visible_sites
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models import MaintenanceWindow
    from monitor.models.maintenance_window import MaintenanceWindowQuerySet

CONTENT_TYPE = "text/calendar; charset=utf-8"
MOST_PAST, MOST_AHEAD = 400, 1600  # events: a fifth of a millisecond each
logger = logging.getLogger(__name__)


def calendar_for_user(
    windows: MaintenanceWindowQuerySet, user: AbstractBaseUser | AnonymousUser, now: datetime
) -> bytes:
    """Return the calendar of those *windows* that *user* may see, with the names of visible sites only."""
    return calendar_of(windows.visible_to(user), visible_sites(user), now)


def calendar_of(windows: MaintenanceWindowQuerySet, sites: Collection[str], now: datetime) -> bytes:
    """Return the calendar of *windows*, from 90 days before *now* to 400 days after; *sites* may be named.

    Of more occurrences than ``MOST_AHEAD`` and ``MOST_PAST`` those nearest to *now*; the description of the
    calendar then tells between which times it is complete.
    """
    calendar, horizon = Calendar(), horizon_at(now)
    calendar.add("prodid", "-//gridcast//maintenance//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", "Maintenance")
    listed = list(windows.not_over(horizon.starts_at).prefetch_related("sites"))
    earlier = _in_order(listed, horizon.starts_at, now + timedelta.resolution)
    past = deque((each for each in earlier if each.occurrence.ends_at <= now), maxlen=MOST_PAST + 1)
    ahead = list(islice(_in_order(listed, now, horizon.ends_at), MOST_AHEAD + 1))
    limits = []
    if len(past) > MOST_PAST:
        limits.append(f"from {past.popleft().occurrence.ends_at:%Y-%m-%d %H:%M} UTC")
    if len(ahead) > MOST_AHEAD:
        limits.append(f"until {ahead.pop().occurrence.starts_at:%Y-%m-%d %H:%M} UTC")
    if limits:
        most = f"at most {MOST_PAST} past and {MOST_AHEAD:,} coming occurrences"
        calendar.add("x-wr-caldesc", f"Complete {' '.join(limits)}: a calendar has {most}.")
    for each in (*past, *ahead):
        named = [site.name for site in each.window.sites.all() if site.name in sites]
        calendar.add_component(_event(each.window, each.occurrence, named, now))
    return bytes(calendar.to_ical())


class _Planned(NamedTuple):
    window: MaintenanceWindow
    occurrence: Occurrence


def _in_order(windows: Iterable[MaintenanceWindow], since: datetime, until: datetime) -> Iterator[_Planned]:
    """Yield the occurrences of *windows* in [*since*, *until*) by start; expand no more than are consumed."""
    expanded = (_occurrences(window, since, until) for window in windows)
    return merge(*expanded, key=lambda planned: planned.occurrence.starts_at)


def _occurrences(window: MaintenanceWindow, since: datetime, until: datetime) -> Iterator[_Planned]:
    try:
        for occurrence in occurrences(times_of(window), since, until):
            yield _Planned(window, occurrence)
    except InvalidSchedule as error:
        logger.error("maintenance window %s is ignored: %s", window.name, error)


def _event(window: MaintenanceWindow, occurrence: Occurrence, sites: list[str], now: datetime) -> Event:
    event = Event()
    suffix = f"-{occurrence.starts_at.astimezone(UTC):%Y%m%dT%H%M%SZ}" if window.schedule else ""
    event.add("uid", f"{window.name}{suffix}@gridcast")
    event.add("dtstamp", now.astimezone(UTC))
    event.add("dtstart", occurrence.starts_at.astimezone(UTC))
    event.add("dtend", occurrence.ends_at.astimezone(UTC))
    event.add("summary", str(window))
    if sites:
        event.add("categories", sites)
    if window.url:
        event.add("url", window.url)
    return event
