"""Keep the rollups as continuous aggregates of TimescaleDB, with the names and columns of the tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction

from monitor.depot.engines.rollup_tables import AGGREGATES

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHUNK = timedelta(days=30)  # also the range of a refresh: one chunk into one chunk is fastest
COLUMNS = ("metric_id", "bucket", "n", "passed", "mean", "min", "max", "stdev", "sketch")
NEW = "_new"  # suffix of an aggregate that has not replaced its table yet

# time_bucket without a time zone uses UTC.
_CREATE = """
CREATE MATERIALIZED VIEW IF NOT EXISTS {name}
WITH (timescaledb.continuous, timescaledb.materialized_only = true, timescaledb.create_group_indexes = false)
AS SELECT
    metric_id,
    time_bucket('{bucket}', time) AS bucket,
    {aggregates}
FROM monitor_sample GROUP BY 1, 2 WITH NO DATA
"""
# Segments by metric: a query decompresses one metric, and late rows join their segment.
_COMPRESSIBLE = """
ALTER {kind} {name} SET (
    timescaledb.compress,
    timescaledb.compress_segmentby = 'metric_id',
    timescaledb.compress_orderby = '{time}'
)
"""
_MATERIALIZED_IN = """
SELECT format('%%I.%%I', materialization_hypertable_schema, materialization_hypertable_name)
FROM timescaledb_information.continuous_aggregates WHERE view_name = %s
"""
# 0: all buckets in one batch. The default of ten decompresses the whole window for each batch.
_REFRESH = """
CALL refresh_continuous_aggregate(
    %s::regclass, %s::timestamptz, %s::timestamptz, force => %s, options => '{"buckets_per_batch": 0}'
)
"""
_DROP_CHUNKS = (
    "SELECT drop_chunks(%s::regclass, newer_than => %s::timestamptz, older_than => %s::timestamptz)"
)
_EXTENT = "SELECT min(time), max(time) FROM monitor_sample"
# Copy the rollups whose samples were deleted.
_COPY_FINAL = """
INSERT INTO {new} ({columns})
SELECT {columns_old} FROM {old} AS old JOIN monitor_metric ON monitor_metric.id = old.metric_id
WHERE NOT EXISTS (SELECT FROM {new} AS new WHERE new.metric_id = old.metric_id AND new.bucket = old.bucket)
"""
_SWAP = """
DROP TABLE {old};
ALTER MATERIALIZED VIEW {new} RENAME TO {old};
"""


@dataclass(frozen=True)
class Aggregate:
    name: str
    bucket: timedelta


ALL = (Aggregate("monitor_hourrollup", HOUR), Aggregate("monitor_dayrollup", DAY))
NAMES = tuple(aggregate.name for aggregate in ALL)


def refresh(hours: Collection[datetime]) -> None:
    """Refresh the aggregates of *hours* and of their days. Must not be called in a transaction."""
    for aggregate in ALL:
        buckets = {_floor(hour, aggregate.bucket) for hour in hours}
        for start, end in windows(buckets, aggregate.bucket):
            _refresh(aggregate.name, start, end, force=True)


def drop_chunks(start: datetime, end: datetime) -> None:
    """Drop the chunks of the aggregates that lie entirely between *start* and *end*."""
    with connection.cursor() as cursor:
        for name in NAMES:
            cursor.execute(_DROP_CHUNKS, [name, start, end])


def windows(buckets: Iterable[datetime], length: timedelta) -> list[tuple[datetime, datetime]]:
    """Join consecutive buckets that lie in one chunk; return (start, end) ranges.

    *buckets* are the starts of buckets that are *length* long.
    """
    ranges: list[tuple[datetime, datetime]] = []
    for bucket in sorted(buckets):
        if ranges and ranges[-1][1] == bucket and _chunk(bucket) == _chunk(ranges[-1][0]):
            ranges[-1] = (ranges[-1][0], bucket + length)
        else:
            ranges.append((bucket, bucket + length))
    return ranges


def replace_tables(report: Callable[[str], None]) -> None:
    """Make samples compressible and replace the rollup tables by continuous aggregates.

    The caller must hold ``AdvisoryLock.ROLLUP`` and must not be in a transaction. Readers use each table
    until its aggregate is complete. *report* is called before each chunk. If the process is killed, the next
    call continues.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COMPRESSIBLE.format(kind="TABLE", name="monitor_sample", time="time"))
    columns, columns_old = ", ".join(COLUMNS), ", ".join(f"old.{column}" for column in COLUMNS)
    for aggregate in ALL:
        new = aggregate.name + NEW
        _create(new, aggregate.bucket)
        _refresh_all(new, report)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                _COPY_FINAL.format(new=new, old=aggregate.name, columns=columns, columns_old=columns_old)
            )
            cursor.execute(_SWAP.format(new=new, old=aggregate.name))


def _create(name: str, bucket: timedelta) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CREATE.format(name=name, bucket=f"{bucket // HOUR} hours", aggregates=AGGREGATES))
        cursor.execute(_MATERIALIZED_IN, [name])
        (table,) = cursor.fetchone()
        key = name.removeprefix("monitor_").removesuffix(NEW) + "_key"
        cursor.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS {key} ON {table} (metric_id, bucket)")
        cursor.execute("SELECT set_chunk_time_interval(%s::regclass, %s::interval)", [table, str(CHUNK)])
        cursor.execute(_COMPRESSIBLE.format(kind="MATERIALIZED VIEW", name=name, time="bucket"))


def _refresh_all(name: str, report: Callable[[str], None]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_EXTENT)
        oldest, newest = cursor.fetchone()
    if oldest is None:
        return
    start = _chunk(oldest)
    while start <= newest:
        report(f"{name}: from {start:%Y-%m-%d}")
        _refresh(name, start, start + CHUNK, force=False)
        start += CHUNK


def _refresh(name: str, start: datetime, end: datetime, *, force: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_REFRESH, [name, start, end, force])


def _chunk(time: datetime) -> datetime:
    """Return the start of the chunk of *time*."""
    return _floor(time, CHUNK)


def _floor(time: datetime, length: timedelta) -> datetime:
    return time - (time - EPOCH) % length
