"""Count outcomes by hour, series and cause: bounded work per call, one process at a time, safe to kill.

Each step is a transaction that moves ``OutcomeProgress`` or deletes the rows of ``DirtyOutcome`` that it has
counted. A step counts from the ledger, so an hour that is counted twice has the same counts.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from django.db import transaction

from monitor.analysis.outcomes import runs_sql, store_sql
from monitor.analysis.outcomes.blocks import DayBlocks, Names, pack_failures, sum_up
from monitor.analysis.outcomes.coverage import DAY, HOUR, floor
from monitor.analysis.outcomes.store_sql import DirtyHours
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.core.db.timestamps import micros, moment
from monitor.depot.series.arrays_sql import suites_of_series
from monitor.models import FailureHour, OutcomeBlock, OutcomeDay, OutcomeProgress
from monitor.models.outcome_counts import OutcomeChange

if TYPE_CHECKING:
    from numpy.typing import NDArray

WITHIN_SECONDS = 2.0
BATCH_ROWS, BATCH_DAYS = 5_000, 10  # of outdated hours, per transaction
STEP = timedelta(minutes=10)  # requests count the runs since the last step
PATIENCE = timedelta(minutes=2)  # after a step: by then most of its runs have been reported
HOUR_MICROS = 3_600_000_000


def note(changed: Collection[tuple[int, datetime]]) -> None:
    """Note late runs, for ``monitor.depot.rollups.worker.subscribe``."""
    store_sql.note_runs(set(changed))


def count(now: datetime, *, within_seconds: float = WITHIN_SECONDS) -> bool:
    """Count the hours that are over and those that are outdated; return whether more may be left.

    The last step may take longer than *within_seconds*. Does nothing while another process counts.
    """
    with session_lock(AdvisoryLock.OUTCOMES) as is_ours:
        if not is_ours:
            return False
        give_up = time.monotonic() + within_seconds
        for step in (_advance, _recount, _back_fill):
            while step(now):
                if time.monotonic() >= give_up:
                    return True
    return False


def recount_all() -> None:
    """Have all outcomes counted again by ``count``; until then requests count the runs."""
    with session_lock(AdvisoryLock.OUTCOMES, wait=True), transaction.atomic():
        for counts in (OutcomeProgress, OutcomeDay, OutcomeBlock, FailureHour):
            counts.objects.all().delete()


@transaction.atomic
def _advance(now: datetime) -> bool:
    """Count the runs until the last step, at most until midnight; return whether there may be more."""
    before = floor(now - PATIENCE, STEP)
    progress = OutcomeProgress.objects.first()
    if progress is None:
        OutcomeProgress.objects.create(since=before, until=before)
        return False
    start = progress.until
    if start >= before:
        return False
    progress.until = min(before, floor(start, DAY) + DAY)
    store_sql.forget_between(start, progress.until)  # before their runs are read
    _add(start, progress.until)
    _store_failures(floor(start, HOUR), progress.until, progress)
    progress.save()
    return True


@transaction.atomic
def _recount(_now: datetime) -> bool:
    """Count the oldest outdated hours again; return whether there were any."""
    progress = OutcomeProgress.objects.get()
    rows = store_sql.oldest_dirty(progress.until, BATCH_ROWS)
    if not rows:
        return False
    ranges = [row for row in rows if row.first != row.last]
    if ranges:
        _divide(ranges, progress)
        store_sql.forget(ranges)
        return True
    days = sorted({floor(row.first, DAY) for row in rows})[:BATCH_DAYS]
    rows = [row for row in rows if row.first < days[-1] + DAY]
    _recount_hours([row for row in rows if row.first >= progress.since], progress)
    store_sql.forget(rows)
    return True


def _divide(ranges: Collection[DirtyHours], progress: OutcomeProgress) -> None:
    """Note the hours, or days, of *ranges* one by one."""
    if any(row.what == OutcomeChange.SUITES for row in ranges):
        store_sql.note_hours(OutcomeChange.SUITES, store_sql.stored_days())
    hours: set[datetime] = set()
    for row in ranges:
        first, last = max(row.first, progress.since), min(row.last, progress.until)
        if row.what == OutcomeChange.FAILURES and row.series is None:
            hours.update(store_sql.hours_with_failures(first, last))
        elif row.what == OutcomeChange.FAILURES and row.series is not None:
            hours.update(runs_sql.failed_hours(row.series, first, last))
    store_sql.note_hours(OutcomeChange.FAILURES, sorted(hours))


def _recount_hours(rows: Collection[DirtyHours], progress: OutcomeProgress) -> None:
    """Count the hours of *rows*, each of which is one hour, or a day of ``OutcomeChange.SUITES``."""
    changed = {
        (row.series, floor(row.first, DAY))
        for row in rows
        if row.what == OutcomeChange.RUNS and row.series is not None
    }
    changed |= {
        (series, day)
        for series, day in runs_sql.dependent_days(changed)
        if progress.since < day + DAY and day < progress.until
    }
    series_by_day: dict[datetime, set[int]] = defaultdict(set)
    for series, day in changed:
        series_by_day[day].add(series)
    for day, own in series_by_day.items():
        _replace(day, progress, sorted(own))
    for day in {row.first for row in rows if row.what == OutcomeChange.SUITES} | set(series_by_day):
        _sum_up(day)
    hours_by_day: dict[datetime, list[datetime]] = defaultdict(list)
    for row in rows:
        if row.what != OutcomeChange.SUITES:
            hours_by_day[floor(row.first, DAY)].append(floor(row.first, HOUR))
    for hours in hours_by_day.values():
        _store_failures(min(hours), max(hours) + HOUR, progress)


@transaction.atomic
def _back_fill(_now: datetime) -> bool:
    """Count the last day with runs before the counted hours; return whether there may be earlier ones."""
    progress = OutcomeProgress.objects.get()
    if progress.since == OutcomeProgress.ALL:
        return False
    newest = runs_sql.newest_slot(progress.since)
    if newest is None:
        progress.since = OutcomeProgress.ALL
    else:
        progress.since = floor(newest, DAY)
        _replace(progress.since, progress)
        _sum_up(progress.since)
        _store_failures(progress.since, progress.since + DAY, progress)
    progress.save()
    return True


def _add(start: datetime, end: datetime) -> None:
    """Add the runs of all series from *start* until *end* on one day, which are not counted yet."""
    day = floor(start, DAY)
    counted = runs_sql.counted(start, end)
    blocks = _blocks(day, counted["series"])
    blocks.add(counted, micros(day))
    store_sql.write_blocks(day, blocks)
    _sum_up(day)


def _replace(day: datetime, progress: OutcomeProgress, series: Sequence[int] | None = None) -> None:
    """Count the runs of *series* (None: all) on *day*, as far as *progress* goes, again."""
    start, end = max(day, progress.since), min(day + DAY, progress.until)
    counted = runs_sql.counted(start, end, series)
    cleared = store_sql.series_of_day(day) if series is None else np.array(series, np.int64)
    blocks = _blocks(day, np.concatenate([cleared, counted["series"]]))
    blocks.clear(cleared)
    blocks.add(counted, micros(day))
    store_sql.write_blocks(day, blocks)


def _blocks(day: datetime, series: NDArray[np.int64]) -> DayBlocks:
    """Return the stored blocks of *day* for the shards of *series*; empty ones where there are none."""
    blocks = DayBlocks.empty(store_sql.shards_of(series))
    stored = store_sql.read_blocks(day, blocks.shards.tolist())
    at = np.searchsorted(blocks.shards, stored.shards)
    blocks.passed[at], blocks.repairs[at] = stored.passed, stored.repairs
    return blocks


def _sum_up(day: datetime) -> None:
    store_sql.write_day(day, sum_up(store_sql.read_blocks(day), *suites_of_series()))


def _store_failures(start: datetime, end: datetime, progress: OutcomeProgress) -> None:
    """Store the failed runs of the hours from *start* until *end*, as far as *progress* goes."""
    names = Names()
    failed = runs_sql.failed_runs(max(start, progress.since), min(end, progress.until), names)
    hours, begins = np.unique(failed["slot"] // HOUR_MICROS * HOUR_MICROS, return_index=True)
    packed = []
    for hour, own in zip(hours.tolist(), np.split(failed, begins[1:]), strict=False):
        used, positions = np.unique(np.concatenate([own["place"], own["stage"]]), return_inverse=True)
        own["place"], own["stage"] = positions[: len(own)], positions[len(own) :]
        packed.append((moment(hour), pack_failures(own, hour), [names.listed[at] for at in used]))
    store_sql.replace_failures(start, end, packed)
