"""Find what ran at a time: the search takes 14:00, or a date and a time."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

from django.urls import reverse

from monitor.web.charts.time_range import InvalidRange, page_time
from monitor.web.search.search import Hit, HitGroup

_TIME = re.compile(r"(?:(?P<date>\d{4}-\d{2}-\d{2})[T ])?(?P<hour>\d{1,2}):(?P<minute>\d{2})", re.ASCII)


def time_hits(text: str, clock: tzinfo, now: datetime) -> HitGroup:
    """Return what ran at the time *text* of *clock*; without a date, at the last such time before *now*."""
    time = _time(text, clock, now)
    if time is None:
        return HitGroup("Schedule", [], has_more=False)
    local = f"{time.astimezone(clock):%Y-%m-%dT%H:%M}"
    hit = Hit(f"What ran at {local[-5:]}", f"{reverse('schedule')}?at={local}", "schedule of", time)
    return HitGroup("Schedule", [hit], has_more=False)


def _time(text: str, clock: tzinfo, now: datetime) -> datetime | None:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    today = now.astimezone(clock).date()
    days = [match["date"]] if match["date"] else [str(today), str(today - timedelta(days=1))]
    try:
        times = [page_time("at", f"{day}T{match['hour']:0>2}:{match['minute']}", clock) for day in days]
    except InvalidRange:
        return None
    return next((time for time in times if time and time <= now), times[0])
