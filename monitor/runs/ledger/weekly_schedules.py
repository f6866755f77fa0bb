"""Weekly schedules as cron expressions and back: ``30 8 * * MON,THU`` is Monday and Thursday at 8:30."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import time

WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_WEEKLY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* ([A-Z]{3}(?:,[A-Z]{3})*|\*)")


@dataclass(frozen=True)
class WeeklyTimes:
    """A time of day at some days of the week, of ``WEEKDAYS`` in their order."""

    days: tuple[str, ...]
    at: time


def weekly_cron(days: Collection[str], at: time) -> str:
    """Return the cron expression of *at* on *days*, at least one of ``WEEKDAYS``."""
    listed = [day for day in WEEKDAYS if day in days]
    return f"{at.minute} {at.hour} * * {'*' if len(listed) == len(WEEKDAYS) else ','.join(listed)}"


def parse_weekly(schedule: str) -> WeeklyTimes | None:
    """Return the times of *schedule*; None if it is no list of weekdays at one time of day."""
    match = _WEEKLY.fullmatch(" ".join(schedule.upper().split()))
    if match is None or int(match[1]) > 59 or int(match[2]) > 23:
        return None
    days = WEEKDAYS if match[3] == "*" else tuple(match[3].split(","))
    if not set(days) <= set(WEEKDAYS):
        return None
    return WeeklyTimes(tuple(day for day in WEEKDAYS if day in days), time(int(match[2]), int(match[1])))
