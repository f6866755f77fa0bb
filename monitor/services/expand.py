"""Expand schedules into the expectation ledger: a row per slot, before its time."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError
from django.db.models import Max, Q

from monitor.models import Component, Run, Series
from monitor.models.run import SCHEDULE, RunQuerySet, State
from reporters.report import run_id
from reporters.schedule import InvalidSchedule, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)
BEAT = "beat"  # the component that ticks
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
AHEAD = timedelta(hours=1)
CATCH_UP = timedelta(days=1)  # after an outage, slots older than this are not even listed as missed


def expand(now: datetime) -> int:
    """Add the slots that are not yet in the ledger, from where each series stopped until AHEAD; how many.

    What the last tick did not put there was not expected then, because the series was switched off, say:
    only slots after it are added. A schedule that cannot be read stops its own series alone.
    """
    _future(now).exclude(series__in=Series.objects.scheduled()).delete()
    last_tick = Component.objects.filter(name=BEAT).values_list("seen_at", flat=True).first() or LONG_AGO
    by_schedule = Q(runs__trigger=SCHEDULE)
    scheduled = Series.objects.scheduled().annotate(last_slot=Max("runs__slot", filter=by_schedule))
    return sum(_expand_series(series, last_tick, now) for series in scheduled)


def withdraw(series: Series, now: datetime) -> None:
    """Take the future slots of *series* out of the ledger: the next tick adds those of its new schedule."""
    _future(now).filter(series=series).delete()


def _future(now: datetime) -> RunQuerySet:
    return Run.objects.filter(trigger=SCHEDULE, state=State.EXPECTED, slot__gt=now)


def check(schedule: str, name: str) -> None:
    """Raise InvalidSchedule unless *schedule* can be read."""
    next(slots(schedule, name, LONG_AGO, LONG_AGO), None)


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


def _expand_series(series: Series, last_tick: datetime, now: datetime) -> int:
    last_slot: datetime | None = series.last_slot  # type: ignore[attr-defined]
    after = max(last_slot or series.created_at, last_tick, now - CATCH_UP)
    try:
        runs = [
            Run(id=run_id(series.name, slot), series=series, slot=slot)
            for slot in slots(series.schedule, series.name, after, now + AHEAD)
        ]
    except InvalidSchedule as error:
        logger.error("series %s is not scheduled: %s", series.name, error)
        return 0
    return len(Run.objects.bulk_create(runs, ignore_conflicts=True))
