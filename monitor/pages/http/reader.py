"""What a reader has chosen: the time zone, by a cookie, and the time range, by the query string."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

from django.contrib import messages

from monitor.charts.time_range import DEFAULT, InvalidRange, PageRange, parse_range, relative
from reporters.schedule import InvalidSchedule, find_zone

if TYPE_CHECKING:
    from django.http import HttpRequest

ZONE_COOKIE = "timezone"  # an IANA name; ``theme.js`` sets it to the zone of the browser if it is absent


def zone_name(request: HttpRequest) -> str:
    """Return the IANA name of the reader's time zone; UTC if none or an unknown one is chosen."""
    name = request.COOKIES.get(ZONE_COOKIE, "")
    return name if _clock(name) else "UTC"


def zone(request: HttpRequest) -> tzinfo:
    """Return the reader's time zone."""
    return _clock(zone_name(request)) or UTC


@lru_cache(maxsize=256)
def _clock(name: str) -> tzinfo | None:
    """Return the clock of the zone *name*; None if there is no such zone."""
    try:
        return find_zone(name)
    except InvalidSchedule:
        return None


def time_range(request: HttpRequest, now: datetime, *, default: str = DEFAULT) -> PageRange:
    """Return the range of the query string; if it cannot be read, say so on the page and return *default*."""
    try:
        return parse_range(request.GET.dict(), now, zone(request), default=default)
    except InvalidRange as error:
        messages.error(request, f"{error}. Showing {default}.")
        return relative(default, now)
