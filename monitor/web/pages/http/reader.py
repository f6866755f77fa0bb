"""What a reader has chosen: zone, suite and site, by cookies, and the time range, by the query string."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import available_timezones

from django.contrib import messages

from monitor.web.charts.time_range import DEFAULT, InvalidRange, PageRange, parse_range, relative
from reporters.schedule import InvalidSchedule, find_zone

if TYPE_CHECKING:
    from django.http import HttpRequest

DEFAULT_COOKIES = {"suite": "default-suite", "site": "default-site"}
_NAME = re.compile(r"[-a-zA-Z0-9_]{1,50}", re.ASCII)
COOKIE_SECONDS = 365 * 24 * 3600
ZONE_COOKIE = "timezone"  # an IANA name; ``theme.js`` sets it to the zone of the browser if it is absent


def zone_name(request: HttpRequest) -> str:
    """Return the IANA name of the reader's time zone; UTC if none or an unknown one is chosen."""
    name = request.COOKIES.get(ZONE_COOKIE, "")
    return name if _clock(name) else "UTC"


def zone(request: HttpRequest) -> tzinfo:
    """Return the reader's time zone."""
    return _clock(zone_name(request)) or UTC


@lru_cache(maxsize=1)  # found by reading hundreds of files
def zone_names() -> list[str]:
    """Return the IANA names of all time zones, sorted."""
    return sorted(available_timezones())


@lru_cache(maxsize=256)
def _clock(name: str) -> tzinfo | None:
    """Return the clock of the zone *name*; None if there is no such zone."""
    try:
        return find_zone(name)
    except InvalidSchedule:
        return None


def default_filters(request: HttpRequest) -> dict[str, str]:
    """Return the suite and the site that lists begin with; none if the query string chooses, also all."""
    if any(name in request.GET for name in DEFAULT_COOKIES):
        return {}
    chosen = {name: request.COOKIES.get(cookie, "") for name, cookie in DEFAULT_COOKIES.items()}
    return {name: value for name, value in chosen.items() if _NAME.fullmatch(value)}


def time_range(request: HttpRequest, now: datetime, *, default: str = DEFAULT) -> PageRange:
    """Return the range of the query string; if it cannot be read, say so on the page and return *default*."""
    try:
        return parse_range(request.GET.dict(), now, zone(request), default=default)
    except InvalidRange as error:
        messages.error(request, f"{error}. Showing {default}.")
        return relative(default, now)
