"""Expand schedules into the expectation ledger: a row per slot, before its time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError
from django.db.models import Max, Q

from monitor.models import Run, Series
from monitor.models.run import SCHEDULE, State
from reporters.report import run_id
from reporters.schedule import InvalidSchedule, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

AHEAD = timedelta(hours=1)
CATCH_UP = timedelta(days=1)  # after an outage, slots older than this are not even listed as missed


def expand(now: datetime) -> int:
    """Add the slots that are not yet in the ledger, from where each series stopped until AHEAD; how many."""
    _withdraw(now)
    by_schedule = Q(runs__trigger=SCHEDULE)
    scheduled = Series.objects.scheduled().annotate(last_slot=Max("runs__slot", filter=by_schedule))
    return sum(_expand_series(series, now) for series in scheduled)


def _withdraw(now: datetime) -> None:
    """Take future slots of series that are no longer enabled out of the ledger."""
    off = Run.objects.filter(series__enabled=False, trigger=SCHEDULE, state=State.EXPECTED, slot__gt=now)
    off.delete()


def slots(schedule: str, name: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """The slots of *schedule* in (after, until], UTC.

    Raises:
        InvalidSchedule: the schedule cannot be read.
    """
    try:
        times = CronSim(resolve(schedule, name), after)
    except CronSimError as error:
        raise InvalidSchedule(f"schedule {schedule!r}: {error}") from error
    for time in times:
        if time > until:
            return
        yield time


def _expand_series(series: Series, now: datetime) -> int:
    last_slot: datetime | None = series.last_slot  # type: ignore[attr-defined]
    after = max(last_slot or series.created_at, now - CATCH_UP)
    runs = [
        Run(id=run_id(series.name, slot), series=series, slot=slot)
        for slot in slots(series.schedule, series.name, after, now + AHEAD)
    ]
    return len(Run.objects.bulk_create(runs, ignore_conflicts=True))
