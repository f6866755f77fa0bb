"""Expand schedules into the expectation ledger: a row per slot, before its time."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Q

from monitor.db import partitions
from monitor.models import Heartbeat, Run, Series
from monitor.models.run import PLANNED, RunQuerySet, State
from monitor.models.series import Follows
from reporters.cron import hashed
from reporters.report import run_id
from reporters.schedule import InvalidSchedule, parse_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)
BEAT = "beat"  # the component that ticks
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=1)
AT_LEAST_AHEAD = AHEAD / 2  # a series is expanded when it has less, so that most ticks have little to do
CATCH_UP = timedelta(days=7)  # after an outage, slots older than this are not even listed as missed


def expand(now: datetime) -> int:
    """Add the slots that are not yet in the ledger, from where each series stopped until AHEAD; how many.

    A series whose schedule says something new (the database then has emptied its ``expanded_until``) loses
    its future slots and begins at the last tick: what that did not put there was not expected then. What is
    claimed already is not touched. A schedule that cannot be read stops its own series alone.
    """
    withdrawn = ~Q(series__in=Series.objects.scheduled()) | Q(series__expanded_until=None)
    _future(now).filter(withdrawn).delete()
    last_tick = Heartbeat.objects.filter(name=BEAT).values_list("seen_at", flat=True).first() or LONG_AGO
    short = Q(expanded_until=None) | Q(expanded_until__lt=now + AT_LEAST_AHEAD)
    scheduled = Series.objects.scheduled().filter(short).select_related("leader")
    if not scheduled.exists():
        return 0
    partitions.create_for([now - CATCH_UP, now + AHEAD])  # who makes room may wait for those who have series
    return sum(
        _expand_series(series, last_tick, now)
        for series in scheduled.select_for_update(of=("self",), no_key=True)
    )


def _future(now: datetime) -> RunQuerySet:
    return Run.objects.filter(trigger__in=PLANNED, state=State.EXPECTED, slot__gt=now)


def slots_of(series: Series, after: datetime, until: datetime) -> Iterator[datetime]:
    """The slots of *series* in (after, until]: its schedule's, or its leader's.

    Raises:
        InvalidSchedule: the schedule cannot be read.
    """
    its = series.leader or series
    schedule = parse_schedule(
        its.schedule, its.name, zone=its.timezone, starts_at=its.starts_at, ends_at=its.ends_at
    )
    delay = timedelta(seconds=series.delay_seconds if series.follows == Follows.WITH else 0)
    return (slot + delay for slot in schedule.slots(after - delay, until - delay))


def _expand_series(series: Series, last_tick: datetime, now: datetime) -> int:
    after, until = _from(series, last_tick, now), now + AHEAD
    try:
        runs = [
            Run(id=run_id(series.name, slot), series=series, slot=slot, due_at=slot + _jitter(series, slot))
            for slot in slots_of(series, after, until)
        ]
    except InvalidSchedule as error:
        logger.error("series %s is not scheduled: %s", series.name, error)
        return 0
    since = series.scheduled_since if after == series.expanded_until else after
    Series.objects.filter(pk=series.pk).update(scheduled_since=since, expanded_until=until)
    return len(Run.objects.bulk_create(runs, ignore_conflicts=True, batch_size=5000))


def _from(series: Series, last_tick: datetime, now: datetime) -> datetime:
    earliest = now - CATCH_UP
    if series.expanded_until is None:
        return max(series.created_at, last_tick, earliest)
    if series.expanded_until < earliest:
        logger.warning(
            "series %s: the ledger was away too long, its slots until %s are lost", series.name, earliest
        )
    return max(series.expanded_until, earliest)


def _jitter(series: Series, slot: datetime) -> timedelta:
    """The same each time that it is asked, so that expanding twice changes nothing."""
    if not series.jitter_seconds:
        return timedelta(0)
    return timedelta(seconds=hashed(series.name, slot.isoformat(), series.jitter_seconds + 1))
