"""The rollups as continuous aggregates of TimescaleDB: same names, same columns as the tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction

from monitor.depot.engines.rollup_tables import COMES_TO

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AT_ONCE = timedelta(days=30)  # a chunk, and a refresh: from one chunk into one chunk it is the quickest
COLUMNS = ("metric_id", "bucket", "n", "passed", "mean", "min", "max", "stdev", "sketch")
NEW = "_new"  # ends the name of one that is not yet in its place

# Hours and days without a time zone are those of UTC.
_MAKE = """
CREATE MATERIALIZED VIEW IF NOT EXISTS {name}
WITH (timescaledb.continuous, timescaledb.materialized_only = true, timescaledb.create_group_indexes = false)
AS SELECT
    metric_id,
    time_bucket('{bucket}', time) AS bucket,
    {comes_to}
FROM monitor_sample GROUP BY 1, 2 WITH NO DATA
"""
# Of one metric only what is asked for is unpacked, and late rows find where they belong.
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
# In one go: by itself it refreshes ten buckets at a time, each time unpacking what the whole window is in.
_REFRESH = """
CALL refresh_continuous_aggregate(
    %s::regclass, %s::timestamptz, %s::timestamptz, force => %s, options => '{"buckets_per_batch": 0}'
)
"""
_DISCARD = "SELECT drop_chunks(%s::regclass, newer_than => %s::timestamptz, older_than => %s::timestamptz)"
_EXTENT = "SELECT min(time), max(time) FROM monitor_sample"
# Those whose samples are gone: nothing is left to make them from.
_KEEP = """
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
NAMES = tuple(one.name for one in ALL)


def refresh(hours: Collection[datetime]) -> None:
    """Make the aggregates of these *hours*, and of their days, anew. Not to be called in a transaction."""
    for one in ALL:
        buckets = {_floor(hour, one.bucket) for hour in hours}
        for start, end in windows(buckets, one.bucket):
            _refresh(one.name, start, end, force=True)


def discard(start: datetime, end: datetime) -> None:
    """Drop the chunks of the aggregates that have nothing but what is from *start* until before *end*."""
    with connection.cursor() as cursor:
        for one in ALL:
            cursor.execute(_DISCARD, [one.name, start, end])


def windows(buckets: Iterable[datetime], length: timedelta) -> list[tuple[datetime, datetime]]:
    """From each to the end of those that follow it without a gap, in the same chunk."""
    found: list[tuple[datetime, datetime]] = []
    for bucket in sorted(buckets):
        if found and found[-1][1] == bucket and _chunk(bucket) == _chunk(found[-1][0]):
            found[-1] = (found[-1][0], bucket + length)
        else:
            found.append((bucket, bucket + length))
    return found


def make(tell: Callable[[str], None]) -> None:
    """Let samples be compressed, and put continuous aggregates in the place of the rollup tables.

    Nobody else may roll meanwhile; who reads finds the tables until the aggregates are complete. What is
    killed is continued by the next call. Not to be called in a transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COMPRESSIBLE.format(kind="TABLE", name="monitor_sample", time="time"))
    for one in ALL:
        new = one.name + NEW
        _create(new, one.bucket)
        _refresh_all(new, tell)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_keep(new, one.name))
            cursor.execute(_SWAP.format(new=new, old=one.name))


def _keep(new: str, old: str) -> str:
    columns_old = ", ".join(f"old.{column}" for column in COLUMNS)
    return _KEEP.format(new=new, old=old, columns=", ".join(COLUMNS), columns_old=columns_old)


def _create(name: str, bucket: timedelta) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_MAKE.format(name=name, bucket=f"{bucket // HOUR} hours", comes_to=COMES_TO))
        cursor.execute(_MATERIALIZED_IN, [name])
        (table,) = cursor.fetchone()
        key = name.removeprefix("monitor_").removesuffix(NEW) + "_key"
        cursor.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS {key} ON {table} (metric_id, bucket)")
        cursor.execute("SELECT set_chunk_time_interval(%s::regclass, %s::interval)", [table, str(AT_ONCE)])
        cursor.execute(_COMPRESSIBLE.format(kind="MATERIALIZED VIEW", name=name, time="bucket"))


def _refresh_all(name: str, tell: Callable[[str], None]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_EXTENT)
        oldest, newest = cursor.fetchone()
    if oldest is None:
        return
    start = _chunk(oldest)
    while start <= newest:
        tell(f"{name}: from {start:%Y-%m-%d}")
        _refresh(name, start, start + AT_ONCE, force=False)
        start += AT_ONCE


def _refresh(name: str, start: datetime, end: datetime, *, force: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_REFRESH, [name, start, end, force])


def _chunk(time: datetime) -> datetime:
    """When the chunk of *time* begins."""
    return _floor(time, AT_ONCE)


def _floor(time: datetime, length: timedelta) -> datetime:
    return time - (time - EPOCH) % length
