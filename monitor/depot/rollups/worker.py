"""Compute the rollups of dirty hours: bounded work per call, one process at a time, safe to kill."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.utils.module_loading import import_string

from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.engines import engine
from monitor.depot.rollups import dirty_hours

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WITHIN_SECONDS = 2.0  # the duration of one call; then other tasks of the process run
BATCH_SECONDS = 0.25  # the size of batches adapts to this
GATHER_BATCH = 20_000  # rows
LEAST_HOURS, MOST_HOURS = 25, 5_000
MOST_DAYS = 30
NO_LIMIT = datetime.max.replace(tzinfo=UTC)
POLL_SECONDS = 0.1


_subscribers: list[str] = []


def subscribe(path: str) -> None:
    """Have the function at the dotted *path* called with all (key of the series, hour) pairs that changed.

    The call is part of the transaction that gathers the pairs. Rooms above the depot subscribe when Django
    starts (``monitor.apps``), so the depot does not import them. The path is imported at the first change:
    starting a command need not load what it does not use.
    """
    if path not in _subscribers:
        _subscribers.append(path)


class RollupInProgress(Exception):
    """Another process computes rollups and did not finish in time."""


@dataclass(frozen=True)
class RebuildProgress:
    """The number of hours *done*, and the number of all *hours* to be rebuilt."""

    done: int
    hours: int


def roll(now: datetime, *, within_seconds: float = WITHIN_SECONDS) -> bool:
    """Roll up dirty hours that have ended; return whether more dirty hours may be left.

    The current hour gets dirty with every report: queries read its samples until the hour ends. The last
    batch may take longer than *within_seconds*. Does nothing while another process computes rollups.
    """
    with session_lock(AdvisoryLock.ROLLUP) as is_ours:
        if not is_ours:
            return False
        until = time.monotonic() + within_seconds
        if gather():
            return True
        before = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return _roll_batches(
            lambda size: dirty_hours.oldest_of_single_series(before=before, at_most=size),
            LEAST_HOURS,
            MOST_HOURS,
            until,
        ) or _roll_batches(
            lambda size: dirty_hours.oldest_of_all_series(before=before, days=size), 1, MOST_DAYS, until
        )


def rebuild(start: datetime | None = None, end: datetime | None = None) -> Iterator[RebuildProgress]:
    """Compute the rollups from *start* until *end* again (default: of all samples); yield the progress.

    Queries read the samples of an hour until that hour is rebuilt. If the process is killed, ``roll`` or
    another call continues. Rollups of deleted samples stay as they are.
    """
    with exclusive():
        while gather():
            pass
        for first, last in _ranges_with_samples(start, end):
            dirty_hours.add_all_series(first, last)
            engine().drop_rollups(first, last)
    hours = dirty_hours.count_of_all_series()
    yield RebuildProgress(0, hours)
    for left in _roll_hours_of_all_series():
        yield RebuildProgress(hours - left, hours)


def gather() -> bool:
    """Merge new dirty hours and call the subscribers in one transaction; return whether more may be left.

    Subscribers publish the latest results, so this function runs more often than ``roll``, and concurrently.
    """
    with transaction.atomic():
        changed = dirty_hours.gather(GATHER_BATCH)
        if changed:
            for path in _subscribers:
                import_string(path)(changed)
    return len(changed) == GATHER_BATCH


def _roll_hours_of_all_series() -> Iterator[int]:
    """Roll up the hours that are dirty for all series; yield after each batch the number of hours left."""
    with exclusive():
        days = 1
        while batch := dirty_hours.oldest_of_all_series(before=NO_LIMIT, days=days):
            seconds = _roll_batch(batch)
            days = _next_size(days, seconds / 8, 1, MOST_DAYS)
            yield dirty_hours.count_of_all_series()


def _roll_batches(
    select: Callable[[int], dirty_hours.DirtyBatch], least: int, most: int, until: float
) -> bool:
    """Roll up batches until ``time.monotonic()`` reaches *until*; return whether batches may be left.

    *select* returns the batch of a given size. The size adapts to the speed, between *least* and *most*.
    """
    size = least
    while batch := select(size):
        size = _next_size(size, _roll_batch(batch), least, most)
        if time.monotonic() >= until:
            return True
    return False


def _roll_batch(batch: dirty_hours.DirtyBatch) -> float:
    """Roll up *batch*, then delete its dirty hours; return the duration in seconds."""
    started = time.monotonic()
    engine().roll_up(batch.hours)
    dirty_hours.delete(batch)
    return time.monotonic() - started


def _next_size(size: int, seconds: float, least: int, most: int) -> int:
    return min(2 * size, most) if seconds < BATCH_SECONDS / 2 else max(size // 2, least)


def _ranges_with_samples(start: datetime | None, end: datetime | None) -> list[tuple[datetime, datetime]]:
    ranges = []
    for partition in engine().partitions("monitor_sample"):
        first = max(partition.start, start) if start else partition.start
        last = min(partition.end, end) if end else partition.end
        if first < last:
            ranges.append((first, last))
    return ranges


@contextmanager
def exclusive(patience_seconds: float = math.inf) -> Iterator[None]:
    """Wait until no other process computes rollups, and hold ``AdvisoryLock.ROLLUP`` during the block.

    Raises:
        RollupInProgress: another process still held the lock after *patience_seconds*.
    """
    give_up = time.monotonic() + patience_seconds
    while True:
        with session_lock(AdvisoryLock.ROLLUP) as is_ours:
            if is_ours:
                yield
                return
        if time.monotonic() > give_up:
            raise RollupInProgress
        time.sleep(POLL_SECONDS)
