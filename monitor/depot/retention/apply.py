"""Delete data older than their retention, in small transactions, one process at a time.

First the cutoffs advance: from then on, data before the cutoffs are not stored. Once all older
transactions have ended, the data before the cutoffs are deleted, oldest first. Samples are rolled up for
the last time in the transaction that deletes them. A partition without kept rows is dropped whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import OperationalError, transaction

from monitor.core.db.advisory_locks import AdvisoryLock, is_lock_timeout, session_lock, session_lock_timeout
from monitor.depot.engines import engine, rollup_tables
from monitor.depot.engines.engine import SeriesHours
from monitor.depot.retention import expiry_sql
from monitor.depot.retention.expiry_sql import ExpiredRange
from monitor.depot.rollups import worker
from monitor.models.retention_cutoff import DataKind

if TYPE_CHECKING:
    from monitor.depot.engines.engine import Partition

DAY = timedelta(days=1)
ROWS_PER_TRANSACTION = 5_000  # about; a day of one series is never divided
MOST_SERIES, MOST_DAYS = 200, 366
METRICS_PER_TRANSACTION = 10  # metrics of deleted series
PATIENCE_SECONDS = 5.0
POLL_SECONDS = 0.05


class _Postponed(Exception):
    """Retention stops here and continues in the next call; the message says why."""


@dataclass
class RetentionResult:
    """What a call deleted.

    Attributes:
        rows: number of deleted rows by kind of data, without the rows of dropped partitions.
        dropped: the dropped partitions.
        later: why expired data are left for the next call; empty if no expired data are left.
    """

    rows: dict[DataKind, int] = field(default_factory=lambda: dict.fromkeys(DataKind, 0))
    dropped: list[Partition] = field(default_factory=list)
    later: str = ""


@dataclass
class _BatchSize:
    """The numbers of days and series of one transaction, adapted to ``ROWS_PER_TRANSACTION``."""

    days: int = 1
    series: int = 20

    def adapt(self, rows: int) -> None:
        if rows > ROWS_PER_TRANSACTION:
            self.days, self.series = max(self.days // 2, 1), max(self.series // 2, 1)
        elif rows < ROWS_PER_TRANSACTION // 4:
            self.days, self.series = min(2 * self.days, MOST_DAYS), min(2 * self.series, MOST_SERIES)


def apply_retention(
    now: datetime, *, within_seconds: float = float("inf"), patience_seconds: float = PATIENCE_SECONDS
) -> RetentionResult:
    """Delete the data that are too old at *now*. May be called again, and killed, at any time.

    Stops after the transaction in which *within_seconds* elapse. Waits at most *patience_seconds* for
    transactions that began before the cutoffs advanced.
    """
    result = RetentionResult()
    with session_lock(AdvisoryLock.RETENTION) as is_ours:
        if not is_ours:
            result.later = "another process applies retention"
            return result
        try:
            _delete_expired(now, time.monotonic() + within_seconds, patience_seconds, result)
        except _Postponed as postponed:
            result.later = str(postponed)
        except OperationalError as error:
            if not is_lock_timeout(error):
                raise
            result.later = f"another transaction locks expired data: {error}".strip()
    return result


def _delete_expired(now: datetime, until: float, patience_seconds: float, result: RetentionResult) -> None:
    expiry_sql.advance(now)
    kept_from = expiry_sql.kept_from(now)
    if expiry_sql.has_pending():
        _wait_for_older_transactions(patience_seconds)
    for kind in DataKind:
        for partition in expiry_sql.partitions(kind):
            if kind in kept_from and partition.start < kept_from[kind]:
                _empty(kind, partition, kept_from[kind], until, result)
        if kind == DataKind.SAMPLES:  # samples in partitions that could not be dropped
            for expired in expiry_sql.left_behind():
                _delete_range(kind, expired, until, result, keep_rows=False)
        if kind == DataKind.REPORTS:  # reports of deleted series were deleted with their runs
            expiry_sql.delete_conflicting()
        else:
            _delete_orphans(kind, until, result)


def _wait_for_older_transactions(patience_seconds: float) -> None:
    """Wait for transactions that began before the cutoffs advanced: they may still store expired data."""
    advanced_at = expiry_sql.database_time()
    give_up = time.monotonic() + patience_seconds
    while count := expiry_sql.count_older_transactions(advanced_at):
        if time.monotonic() > give_up:
            raise _Postponed(f"{count} transactions are in progress that may write expired data")
        time.sleep(POLL_SECONDS)


def _empty(
    kind: DataKind, partition: Partition, kept_from: datetime, until: float, result: RetentionResult
) -> None:
    """Delete the expired rows of *partition*, or drop it if no series keeps any of its rows.

    Every series keeps its data from *kept_from* on. Samples are rolled up first. If late data arrive
    meanwhile, the partition stays, and ``expiry_sql.left_behind`` finds its expired rows later.
    """
    is_over = expiry_sql.TABLES[kind].is_partitioned and partition.end <= kept_from
    can_drop = is_over and not expiry_sql.is_needed(kind, partition)
    if can_drop and kind != DataKind.SAMPLES:
        can_drop = _drop(kind, partition, result)
    for expired in expiry_sql.expired_ranges(kind, partition):
        _delete_range(kind, expired, until, result, keep_rows=can_drop)
    if can_drop and kind == DataKind.SAMPLES:
        _drop(kind, partition, result)


def _drop(kind: DataKind, partition: Partition, result: RetentionResult) -> bool:
    """Drop *partition* unless late data have arrived in it; return whether it was dropped."""
    is_dropped = engine().drop(partition, lambda: expiry_sql.is_needed(kind, partition))
    if is_dropped:
        result.dropped.append(partition)
    return is_dropped


def _delete_orphans(kind: DataKind, until: float, result: RetentionResult) -> None:
    """Delete the rows of metrics whose series were deleted."""
    metrics = expiry_sql.orphaned_metrics(kind)
    for at in range(0, len(metrics), METRICS_PER_TRANSACTION):
        if time.monotonic() >= until:
            raise _Postponed("the time limit of this call was reached")
        result.rows[kind] += expiry_sql.delete_orphans(kind, metrics[at : at + METRICS_PER_TRANSACTION])


def _delete_range(
    kind: DataKind, expired: ExpiredRange, until: float, result: RetentionResult, *, keep_rows: bool
) -> None:
    """Delete *expired* batch by batch.

    With *keep_rows* samples are only rolled up and recorded as deleted; the caller drops their partition.
    """
    for rows in _delete_in_batches(kind, expired, keep_rows=keep_rows):
        result.rows[kind] += rows
        if time.monotonic() >= until:
            raise _Postponed("the time limit of this call was reached")


def _delete_in_batches(kind: DataKind, expired: ExpiredRange, *, keep_rows: bool) -> Iterator[int]:
    """Delete *expired* in several transactions; yield the number of rows that each of them deleted."""
    size, remaining = _BatchSize(), list(expired.series)
    while remaining:
        series, remaining = remaining[: size.series], remaining[size.series :]
        oldest = expiry_sql.oldest(kind, ExpiredRange(series, expired.start, expired.stop))
        if oldest is None:
            expiry_sql.record_deleted(kind, series, expired.stop)
            yield 0
            continue
        start = oldest.replace(hour=0, minute=0, second=0, microsecond=0)
        while start < expired.stop:
            stop = min(start + size.days * DAY, expired.stop)
            rows = _delete_batch(kind, ExpiredRange(series, start, stop), keep_rows=keep_rows)
            size.adapt(rows)
            start = stop
            yield rows


def _delete_batch(kind: DataKind, batch: ExpiredRange, *, keep_rows: bool) -> int:
    if kind != DataKind.SAMPLES:
        with session_lock_timeout():
            return _delete(kind, batch, keep_rows=keep_rows)
    try:  # no rollup may be computed from samples that are being deleted
        with worker.exclusive(PATIENCE_SECONDS), session_lock_timeout():
            return _delete(kind, batch, keep_rows=keep_rows)
    except worker.RollupInProgress:
        raise _Postponed("another process computes rollups") from None


@transaction.atomic
def _delete(kind: DataKind, batch: ExpiredRange, *, keep_rows: bool) -> int:
    if kind == DataKind.SAMPLES:
        days = [batch.start + number * DAY for number in range((batch.stop - batch.start).days)]
        rollup_tables.roll_up([SeriesHours(series, days) for series in batch.series], sparse=0)
        expiry_sql.delete_dirty_hours(batch.series, batch.start, batch.stop)
    rows = 0 if keep_rows else expiry_sql.delete(kind, batch.series, batch.start, batch.stop)
    expiry_sql.record_deleted(kind, batch.series, batch.stop)
    return rows
