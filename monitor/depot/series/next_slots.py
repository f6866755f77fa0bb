"""The next slots of a schedule, for people who write one."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from reporters.schedule import parse_schedule

SHOWN = 5


class NextSlot(NamedTuple):
    """A slot, and its time as a text in the time zone of the schedule."""

    at: datetime
    local_time: str


def next_slots(
    expression: str,
    series: str,
    zone: str,
    now: datetime,
    *,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> list[NextSlot]:
    """Return the next ``SHOWN`` slots after *now*; fewer if the schedule ends before.

    Raises:
        InvalidSchedule: as ``parse_schedule`` says.
    """
    schedule = parse_schedule(expression, series, zone=zone, starts_at=starts_at, ends_at=ends_at)
    slots: list[NextSlot] = []
    after: datetime | None = now
    while after is not None and len(slots) < SHOWN:
        after = schedule.next_after(after)
        if after is not None:
            slots.append(NextSlot(after, f"{after.astimezone(schedule.clock):%Y-%m-%d %H:%M %Z}"))
    return slots
