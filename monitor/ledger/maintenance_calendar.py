"""Write maintenance windows as an iCalendar file (RFC 5545).

Recurring windows are written as their single occurrences: a cron expression has no equal among the rules of
RFC 5545.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC
from typing import TYPE_CHECKING

from icalendar import Calendar, Event

from monitor.ledger.maintenance import times_of, visible_sites
from monitor.ledger.maintenance_import import horizon_at
from monitor.ledger.maintenance_times import Occurrence, occurrences
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models import MaintenanceWindow
    from monitor.models.maintenance_window import MaintenanceWindowQuerySet

CONTENT_TYPE = "text/calendar; charset=utf-8"
logger = logging.getLogger(__name__)


def calendar_for_user(
    windows: MaintenanceWindowQuerySet, user: AbstractBaseUser | AnonymousUser, now: datetime
) -> bytes:
    """Return the calendar of those *windows* that *user* may see, with the names of visible sites only."""
    return calendar_of(windows.visible_to(user), visible_sites(user), now)


def calendar_of(windows: MaintenanceWindowQuerySet, sites: Collection[str], now: datetime) -> bytes:
    """Return the calendar of *windows*, from 90 days before *now* to 400 days after; *sites* may be named."""
    calendar, horizon = Calendar(), horizon_at(now)
    calendar.add("prodid", "-//gridcast//maintenance//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", "Maintenance")
    for window in windows.not_over(horizon.starts_at).prefetch_related("sites"):
        named = [site.name for site in window.sites.all() if site.name in sites]
        try:
            for occurrence in occurrences(times_of(window), horizon.starts_at, horizon.ends_at):
                calendar.add_component(_event(window, occurrence, named, now))
        except InvalidSchedule as error:
            logger.error("maintenance window %s is ignored: %s", window.name, error)
    return bytes(calendar.to_ical())


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
