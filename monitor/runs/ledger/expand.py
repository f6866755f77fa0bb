"""Expand schedules into the ledger: one row per slot, before it is due."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import F, Min, Q, Value
from django.db.models.functions import Greatest

from monitor.core.db import binary, partitions
from monitor.models import Heartbeat, Reporter, ReporterAssignment, Series
from monitor.models.run import PLANNED
from monitor.models.series import Follows
from monitor.runs.ledger.agent_runs import GRACE
from monitor.runs.ledger.heartbeats import SCHEDULER
from reporters.cron import hashed
from reporters.report import run_id
from reporters.schedule import InvalidSchedule, parse_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from monitor.models.series import SeriesQuerySet

logger = logging.getLogger(__name__)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=1)
MIN_AHEAD = AHEAD / 2  # series with more than this are not expanded, so most ticks have little to do
MAX_SERIES, MAX_SLOTS = 2_000, 50_000  # in one tick
CATCH_UP = timedelta(days=7)  # after an outage, slots older than this are not even recorded as missed
# The defaults of ``Run`` stand in the statement: a day of a series by the minute has 1,440 rows.
_INSERT = """
INSERT INTO monitor_run
    (id, series_id, slot, due_at, wait_until, trigger, forced, state, reason, cause, attempt, stage,
    failed_resource)
SELECT run, %b, slot, due_at, CASE WHEN due_at <= %b THEN %b::timestamptz END, 'schedule', false, 'expected',
    '', '', 0, '', ''
FROM unnest(%b::uuid[], %b::timestamptz[], %b::timestamptz[]) AS planned (run, slot, due_at)
ON CONFLICT DO NOTHING
"""
_WITHDRAW = """
DELETE FROM monitor_run
WHERE series_id = ANY (%b) AND slot > %b AND trigger = ANY (%b) AND state = 'expected'
"""


def expand(now: datetime, *, at_most: int = MAX_SLOTS) -> int:
    """Add a run for each scheduled slot up to ``AHEAD`` after *now*; return the number of added runs.

    After a long outage, or a change of thousands of schedules, a call ends when it has added *at_most* runs;
    further calls add the others: changed series first, those of agents last, since agents start their runs
    without the ledger.

    When a schedule changes, a database trigger empties ``scheduled_since`` and ``expanded_until``. The series
    then loses its future slots and is expanded from the last tick on, because the new schedule did not apply
    before. Claimed runs stay. A schedule that cannot be parsed affects its own series only. A series of an
    agent has no slots before its reporter has an assignment: until then no agent knows of it.
    """
    unassigned = list(Reporter.objects.unassigned().values_list("pk", flat=True))
    if unassigned:  # another reporter may have run these series before
        moved = Series.objects.filter(reporter__in=unassigned, expanded_until__isnull=False)
        moved.update(scheduled_since=None, expanded_until=None)
    scheduled = Series.objects.scheduled().exclude(reporter__in=unassigned)
    short = scheduled.filter(Q(expanded_until=None) | Q(expanded_until__lt=now + MIN_AHEAD))
    changed = Series.objects.filter(scheduled_since=None)
    if not changed.exists() and not short.exists():
        return 0
    # Before locking series: creating a partition may wait for transactions that hold such locks.
    partitions.create_for([now - CATCH_UP, now + AHEAD])
    _begin(changed, scheduled, now)
    order = (
        F("reporter__site").asc(nulls_first=True),
        F("expanded_until").asc(nulls_first=True),
        F("pk").asc(),
    )
    locked = short.select_related("leader", "reporter").select_for_update(of=("self",), no_key=True)
    assigned_at = _first_assignments()
    added, outdated = 0, 0
    for series in locked.order_by(*order)[:MAX_SERIES]:
        if added >= at_most:
            break
        after = _expand_after(series, assigned_at.get(series.reporter_id, LONG_AGO))
        outdated += after < now - CATCH_UP
        added += _expand_series(series, max(after, now - CATCH_UP), now)
    if outdated:
        text = "slots of %d series before %s are not recorded, because the outage was too long"
        logger.warning(text, outdated, now - CATCH_UP)
    return added


def _begin(changed: SeriesQuerySet, scheduled: SeriesQuerySet, now: datetime) -> None:
    """Record since when the schedules of *changed* series apply; end series that are not *scheduled*."""
    last_tick = Heartbeat.objects.filter(name=SCHEDULER).values_list("seen_at", flat=True).first() or LONG_AGO
    since = Greatest("created_at", Value(last_tick), Value(now - CATCH_UP))
    changed.filter(pk__in=scheduled).update(scheduled_since=since)
    ended = list(changed.order_by("pk").values_list("pk", flat=True)[:MAX_SERIES])
    if ended:
        _withdraw(ended, now)
        changed.filter(pk__in=ended).update(scheduled_since=now)


def _withdraw(series: Sequence[int], now: datetime) -> None:
    """Delete the future slots of *series*; their runs have no transitions yet."""
    with binary.cursor() as cursor:
        cursor.execute(_WITHDRAW, [series, now, list(PLANNED)])


def _first_assignments() -> dict[int, datetime]:
    """Return when each agent's oldest known assignment was issued, by the primary key of its reporter."""
    return dict(ReporterAssignment.objects.order_by().values_list("reporter").annotate(Min("issued_at")))


def slots_of(series: Series, after: datetime, until: datetime) -> Iterator[datetime]:
    """Return the slots of *series* in (after, until], from its own schedule or the schedule of its leader.

    Raises:
        InvalidSchedule: the schedule cannot be parsed.
    """
    timed = series.leader or series
    schedule = parse_schedule(
        timed.schedule, timed.name, zone=timed.timezone, starts_at=timed.starts_at, ends_at=timed.ends_at
    )
    delay = timedelta(seconds=series.delay_seconds if series.follows == Follows.WITH else 0)
    return (slot + delay for slot in schedule.slots(after - delay, until - delay))


def _expand_series(series: Series, after: datetime, now: datetime) -> int:
    """Add the runs of *series* after the time *after*; return their number."""
    if series.expanded_until is None:
        _withdraw([series.pk], now)
    until = now + AHEAD
    try:
        slots = list(slots_of(series, after, until))
    except InvalidSchedule as error:
        logger.error("series %s is not scheduled: %s", series.name, error)
        return 0
    since = series.scheduled_since if after == series.expanded_until else after
    Series.objects.filter(pk=series.pk).update(scheduled_since=since, expanded_until=until)
    runs = [run_id(series.name, slot) for slot in slots]
    due_times = [slot + _jitter(series, slot) for slot in slots]
    with binary.cursor() as cursor:
        delivers_late = series.reporter.is_remote or series.is_reported
        wait_until = now + GRACE if delivers_late else None  # to deliver what was measured
        return cursor.execute(_INSERT, [series.pk, now, wait_until, runs, slots, due_times]).rowcount


def _expand_after(series: Series, assigned_at: datetime) -> datetime:
    return series.expanded_until or max(series.scheduled_since or LONG_AGO, assigned_at)


def _jitter(series: Series, slot: datetime) -> timedelta:
    """Return the delay of the run at *slot*.

    The delay is a hash of series and slot, so that it is the same at every expansion.
    """
    if not series.jitter_seconds:
        return timedelta(0)
    return timedelta(seconds=hashed(series.name, slot.isoformat(), series.jitter_seconds + 1))
