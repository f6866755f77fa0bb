"""Execute the statements that find and delete data older than their retention, one kind of data at a time.

Each statement covers some series and a time range, so that it takes little time and reads few partitions.
``models.retention_cutoff`` declares the kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection
from psycopg.rows import class_row

from monitor.core.db import binary
from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.engines import engine
from monitor.depot.engines.engine import Partition
from monitor.models.retention_cutoff import DataKind

EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RetainedTable:
    """The table of one kind of data.

    Attributes:
        time: name of the time column.
        owners: SQL that joins each row (alias ``kept``) with the row (``owner``) that has its series.
    """

    name: str
    time: str
    owners: str
    is_partitioned: bool


_BY_METRIC = """
JOIN monitor_metric AS metric ON metric.id = kept.metric_id
JOIN monitor_segment AS owner ON owner.id = metric.segment_id
"""
# The bounds on the owner prune the partitions of the ledger as well.
_BY_RUN = """
JOIN monitor_run AS owner ON owner.id = kept.run_id AND owner.slot = kept.slot
    AND owner.slot >= %(start)s AND owner.slot < %(stop)s
"""
TABLES = {
    DataKind.REPORTS: RetainedTable("monitor_rawreport", "slot", _BY_RUN, is_partitioned=True),
    DataKind.SAMPLES: RetainedTable("monitor_sample", "time", _BY_METRIC, is_partitioned=True),
    DataKind.HOURLY: RetainedTable("monitor_hourrollup", "bucket", _BY_METRIC, is_partitioned=False),
    DataKind.DAILY: RetainedTable("monitor_dayrollup", "bucket", _BY_METRIC, is_partitioned=False),
}

_KEEPS = ", ".join(f"('{kind}', suite.keep_{kind}_days)" for kind in DataKind)
# The cutoff of each series and kind, as its suite sets it; a cutoff never moves back.
_WANTED = f"""
SELECT series.id AS series_id, suite.id AS suite_id, keeps.kind,
    greatest(cutoff.kept_from, date_trunc('day', %(now)s, 'UTC') - keeps.days * interval '24 hours')
        AS kept_from
FROM monitor_series AS series
JOIN monitor_suite AS suite ON suite.id = series.suite_id
CROSS JOIN LATERAL (VALUES {_KEEPS}) AS keeps (kind, days)
LEFT JOIN monitor_retentioncutoff AS cutoff ON cutoff.series_id = series.id AND cutoff.kind = keeps.kind
WHERE keeps.days IS NOT NULL OR cutoff.kept_from > coalesce(cutoff.gone_before, '-infinity')
"""  # noqa: S608
_ADVANCE = f"""
INSERT INTO monitor_retentioncutoff (series_id, kind, kept_from)
SELECT series_id, kind, kept_from FROM ({_WANTED}) AS wanted ORDER BY series_id, kind
ON CONFLICT (series_id, kind) DO UPDATE SET kept_from = EXCLUDED.kept_from
WHERE monitor_retentioncutoff.kept_from < EXCLUDED.kept_from
"""  # noqa: S608
_PENDING = (
    "SELECT EXISTS (SELECT FROM monitor_retentioncutoff WHERE gone_before IS NULL OR gone_before < kept_from)"
)
_OLDER_TRANSACTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < %s
    AND backend_type = 'client backend'
"""
_EXPIRED_RANGES = """
SELECT array_agg(series_id ORDER BY series_id), start, stop
FROM (
    SELECT series_id, greatest(gone_before, %(start)s) AS start, least(kept_from, %(stop)s) AS stop
    FROM monitor_retentioncutoff WHERE kind = %(kind)s
) AS pending
WHERE start < stop GROUP BY start, stop ORDER BY start, stop
"""
_OLDEST = """
SELECT min(oldest) FROM unnest(%(series)s::bigint[]) AS of (series_id)
CROSS JOIN LATERAL (
    SELECT min(kept.{time}) AS oldest FROM {table} AS kept {owners}
    WHERE owner.series_id = of.series_id AND kept.{time} >= %(start)s AND kept.{time} < %(stop)s
) AS its
"""
_OF_METRICS = """
DELETE FROM {table} WHERE {time} >= %(start)s AND {time} < %(stop)s AND metric_id = ANY (%(metrics)s)
"""
# A separate query: deleting by a join would decompress every row that the join might find.
_METRICS = """
SELECT coalesce(array_agg(metric.id), '{}') FROM monitor_metric AS metric
JOIN monitor_segment AS owner ON owner.id = segment_id WHERE series_id = ANY (%s)
"""
_OF_RUNS = """
DELETE FROM {table} AS kept USING monitor_run AS owner
WHERE kept.slot >= %(start)s AND kept.slot < %(stop)s AND owner.slot >= %(start)s AND owner.slot < %(stop)s
    AND owner.series_id = ANY (%(series)s) AND kept.run_id = owner.id AND kept.slot = owner.slot
"""
_RECORD_DELETED = """
UPDATE monitor_retentioncutoff SET gone_before = %(stop)s
WHERE kind = %(kind)s AND series_id = ANY (%(series)s) AND (gone_before IS NULL OR gone_before < %(stop)s)
"""
# The query reads by the index, and only partitions older than the cutoff, most of which no longer exist.
_LEFT_BEHIND = """
SELECT cutoff.series_id, date_trunc('day', its.oldest, 'UTC'), gone_before
FROM monitor_retentioncutoff AS cutoff
CROSS JOIN LATERAL (
    SELECT min(first.time) AS oldest FROM monitor_segment AS segment
    JOIN monitor_metric AS metric ON metric.segment_id = segment.id
    CROSS JOIN LATERAL (
        SELECT time FROM monitor_sample WHERE metric_id = metric.id AND time < gone_before
        ORDER BY time LIMIT 1
    ) AS first
    WHERE segment.series_id = cutoff.series_id
) AS its
WHERE kind = 'samples' AND its.oldest IS NOT NULL ORDER BY cutoff.series_id
"""
# Rows that a series keeps; no series keeps the rows of deleted series.
_NEEDED = """
SELECT EXISTS (
    SELECT FROM {table} AS kept {owners}
    LEFT JOIN monitor_retentioncutoff AS cutoff
        ON cutoff.series_id = owner.series_id AND cutoff.kind = %(kind)s
    WHERE kept.{time} >= %(start)s AND kept.{time} < %(stop)s
        AND (cutoff.kept_from IS NULL OR cutoff.kept_from < %(stop)s)
)
"""
# Dirty hours that are not gathered yet are kept: subscribers have not been notified of these changes.
_DELETE_DIRTY_HOURS = """
DELETE FROM monitor_dirtyhour WHERE gathered AND series_id = ANY (%s) AND hour >= %s AND hour < %s
"""
_EXPIRY_COUNTS = f"""
SELECT wanted.suite_id AS suite, count(*) AS rows,
    count(*) FILTER (WHERE kept.{{time}} < wanted.kept_from) AS expired,
    min(kept.{{time}}) FILTER (WHERE kept.{{time}} < wanted.kept_from) AS oldest
FROM {{table}} AS kept {{owners}}
LEFT JOIN ({_WANTED}) AS wanted ON wanted.series_id = owner.series_id AND wanted.kind = %(kind)s
WHERE kept.{{time}} >= %(start)s AND kept.{{time}} < %(stop)s
GROUP BY wanted.suite_id
"""  # noqa: S608
_KEPT_FROM = f"SELECT kind, max(kept_from) FROM ({_WANTED}) AS wanted GROUP BY kind"  # noqa: S608
# A loose index scan: it reads one row of each metric.
_ORPHANS = """
WITH RECURSIVE there AS (
    (SELECT metric_id FROM {table} ORDER BY metric_id LIMIT 1)
    UNION ALL
    SELECT (SELECT metric_id FROM {table} WHERE metric_id > there.metric_id ORDER BY metric_id LIMIT 1)
    FROM there WHERE metric_id IS NOT NULL
)
SELECT metric_id FROM there
WHERE metric_id IS NOT NULL AND NOT EXISTS (SELECT FROM monitor_metric WHERE id = metric_id)
"""
_DELETE_ORPHANS = "DELETE FROM {table} WHERE metric_id = ANY (%s)"
_DELETE_CONFLICTING = """
DELETE FROM monitor_conflictingreport AS kept USING monitor_retentioncutoff AS cutoff
WHERE cutoff.series_id = kept.series_id AND cutoff.kind = 'reports' AND kept.slot < cutoff.kept_from
"""
_SIZE = "SELECT pg_total_relation_size(%s::regclass)"


@dataclass(frozen=True)
class ExpiredRange:
    """Expired data of *series* (primary keys) from *start* until before *stop*."""

    series: Sequence[int]
    start: datetime
    stop: datetime


class ExpiryCount(NamedTuple):
    """Counts of the rows of one suite in one partition.

    Attributes:
        suite: primary key of the suite; None stands for all suites that keep everything.
        rows: number of all rows.
        expired: number of expired rows.
        oldest: time of the oldest expired row.
    """

    suite: int | None
    rows: int
    expired: int
    oldest: datetime | None


def advance(now: datetime) -> None:
    """Move the cutoffs of each series to the last midnight (UTC) minus the retention of its suite.

    A cutoff never moves back.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ADVANCE, {"now": now})


def has_pending() -> bool:
    """Return whether data before a cutoff have not been deleted yet."""
    return bool(_fetch_value(_PENDING))


def database_time() -> datetime:
    time: datetime = _fetch_value("SELECT clock_timestamp()")
    return time


def count_older_transactions(than: datetime) -> int:
    """Return the number of unfinished transactions of other sessions that began before *than*."""
    return int(_fetch_value(_OLDER_TRANSACTIONS, [than]))


def partitions(kind: DataKind) -> list[Partition]:
    """Return the partitions of the table of *kind*, oldest first; an unpartitioned table is one partition."""
    table = TABLES[kind]
    if table.is_partitioned:
        return engine().partitions(table.name)
    return [Partition(table.name, table.name, EARLIEST, LATEST, int(_fetch_value(_SIZE, [table.name])))]


def expired_ranges(kind: DataKind, partition: Partition) -> list[ExpiredRange]:
    """Return the expired ranges within *partition*, oldest first, each with its series."""
    with connection.cursor() as cursor:
        cursor.execute(_EXPIRED_RANGES, {"kind": kind, "start": partition.start, "stop": partition.end})
        return [ExpiredRange(series, start, stop) for series, start, stop in cursor.fetchall()]


def oldest(kind: DataKind, expired: ExpiredRange) -> datetime | None:
    """Return the time of the oldest row in *expired*; None if the range has no rows."""
    parameters = _range_parameters(expired.series, expired.start, expired.stop)
    time: datetime | None = _fetch_value(_for_table(_OLDEST, kind), parameters)
    return time


def delete(kind: DataKind, series: Collection[int], start: datetime, stop: datetime) -> int:
    """Delete the rows of *series* from *start* until before *stop*; return the number of deleted rows."""
    parameters = _range_parameters(series, start, stop)
    statement = _OF_RUNS
    if kind != DataKind.REPORTS:
        statement = _OF_METRICS
        parameters["metrics"] = _fetch_value(_METRICS, [parameters["series"]])
    with connection.cursor() as cursor:
        cursor.execute(_for_table(statement, kind), parameters)
        return int(cursor.rowcount)


def record_deleted(kind: DataKind, series: Collection[int], stop: datetime) -> None:
    """Record that the data of *series* before *stop* are deleted."""
    with connection.cursor() as cursor:
        cursor.execute(_RECORD_DELETED, {"kind": kind, "series": list(series), "stop": stop})


def delete_dirty_hours(series: Collection[int], start: datetime, stop: datetime) -> None:
    """Delete the gathered dirty hours of *series* from *start* until before *stop*.

    A dirty hour is gathered once subscribers have been notified of the change. The caller must have computed
    the rollups of these hours: the rollups are final, because the samples are deleted. Until the caller's
    transaction ends, no other process gathers dirty hours.
    """
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_DIRTY_HOURS, [list(series), start, stop])


def left_behind() -> list[ExpiredRange]:
    """Return the ranges of samples that still exist although they are recorded as deleted."""
    with connection.cursor() as cursor:
        cursor.execute(_LEFT_BEHIND)
        return [ExpiredRange([series], start, stop) for series, start, stop in cursor.fetchall()]


def is_needed(kind: DataKind, partition: Partition) -> bool:
    """Return whether *partition* has a row that a series keeps."""
    parameters = {"kind": kind, "start": partition.start, "stop": partition.end}
    return bool(_fetch_value(_for_table(_NEEDED, kind), parameters))


def expiry_counts(kind: DataKind, partition: Partition, now: datetime) -> list[ExpiryCount]:
    """Count, by suite, the rows of *partition* and how many of them are expired at *now*."""
    parameters = {"kind": kind.value, "start": partition.start, "stop": partition.end, "now": now}
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(ExpiryCount)
        counts: list[ExpiryCount] = cursor.execute(_for_table(_EXPIRY_COUNTS, kind), parameters).fetchall()
        return counts


def kept_from(now: datetime) -> dict[str, datetime]:
    """Return, by kind, the time from which every series keeps its data at *now*.

    A kind is absent if all series keep it for ever.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KEPT_FROM, {"now": now})
        return dict(cursor.fetchall())


def delete_conflicting() -> None:
    """Delete the conflicting reports of slots whose reports have expired; there are at most a few."""
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_CONFLICTING)


def orphaned_metrics(kind: DataKind) -> list[int]:
    """Return the primary keys of deleted metrics that still have rows."""
    with connection.cursor() as cursor:
        cursor.execute(_for_table(_ORPHANS, kind))
        return [metric for (metric,) in cursor.fetchall()]


def delete_orphans(kind: DataKind, metrics: Collection[int]) -> int:
    """Delete the rows of deleted *metrics* (primary keys); return the number of deleted rows."""
    with connection.cursor() as cursor:
        cursor.execute(_for_table(_DELETE_ORPHANS, kind), [list(metrics)])
        return int(cursor.rowcount)


def _for_table(statement: str, kind: DataKind) -> str:
    table = TABLES[kind]
    return statement.format(table=table.name, time=table.time, owners=table.owners)


def _range_parameters(series: Collection[int], start: datetime, stop: datetime) -> dict[str, Any]:
    return {"series": list(series), "start": start, "stop": stop}


def _fetch_value(statement: str, parameters: Any = None) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()[0]
