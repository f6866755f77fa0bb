"""Which slots are due: each slot once, in order, whatever the clock does.

The cursor is the time up to which all slots have been handled. It never goes back by itself, so a clock that
is set back repeats no slot. Slots older than ``GRACE`` when they are found are not run: after a jump forward,
or while the agent did not run, the server's ledger has them as missed.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Callable

from reporters.cron import hashed
from reporters.remote.assignment import AssignedSeries, SiteAssignment
from reporters.schedule import InvalidSchedule, Schedule

GRACE = timedelta(seconds=120)  # the server calls a run missed after this time


@dataclass(frozen=True)
class DueSlot:
    """A slot of *series* that may start at *due_at*: the slot and its jitter."""

    series: AssignedSeries
    slot: datetime
    due_at: datetime


@dataclass(frozen=True)
class PassedOver:
    """The slots between *after* and *until* were not run."""

    after: datetime
    until: datetime


def due_at(series: AssignedSeries, slot: datetime) -> datetime:
    """Return when the run may start; the jitter is a hash, the same as in the server's ledger."""
    if not series.jitter_seconds:
        return slot
    return slot + timedelta(seconds=hashed(series.name, slot.isoformat(), series.jitter_seconds + 1))


class Timetable:
    """The slots of *assignment* after *cursor*. *complain* gets a text for a series that has no slots.

    A follower has slots only if its leader runs here too.
    """

    def __init__(self, assignment: SiteAssignment, cursor: datetime, complain: Callable[[str], None]) -> None:
        self.cursor = cursor
        self._scheduled: dict[str, tuple[AssignedSeries, Schedule]] = {}
        for series in assignment.series.values():
            try:
                schedule = series.parsed_schedule()
            except InvalidSchedule as error:
                complain(f"series {series.name} is not scheduled: {error}")
                continue
            if schedule is not None and (not series.after or series.after in assignment.series):
                self._scheduled[series.name] = (series, schedule)
        self._next: list[tuple[datetime, str]] = []
        self._seek()

    def next_slot(self) -> datetime | None:
        """Return the next slot of any series, or None if there is none."""
        return self._next[0][0] if self._next else None

    def due(self, now: datetime) -> tuple[list[DueSlot], PassedOver | None]:
        """Return the slots since the cursor, in order, and move the cursor.

        The second value is the time whose slots are too old to run, None if there is none.
        """
        passed_over = None
        if now - self.cursor > GRACE:
            oldest = now - GRACE
            if self._next and self._next[0][0] <= oldest:
                passed_over = PassedOver(self.cursor, oldest)
            self.cursor = oldest
            self._seek()
        found: list[DueSlot] = []
        while self._next and self._next[0][0] <= now:
            slot, name = heapq.heappop(self._next)
            series, schedule = self._scheduled[name]
            found.append(DueSlot(series, slot, due_at(series, slot)))
            self._push(series, schedule, slot)
        self.cursor = max(self.cursor, now)
        return found, passed_over

    def set_back(self, now: datetime) -> None:
        """Continue from *now*, before the cursor: the clock is known to have been wrong."""
        self.cursor = now
        self._seek()

    def _seek(self) -> None:
        self._next = []
        for series, schedule in self._scheduled.values():
            self._push(series, schedule, self.cursor)

    def _push(self, series: AssignedSeries, schedule: Schedule, after: datetime) -> None:
        slot = schedule.next_after(after - series.delay)
        if slot is not None:
            heapq.heappush(self._next, (slot + series.delay, series.name))
