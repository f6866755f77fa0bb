"""Run the depot on TimescaleDB under the Timescale licence or, with fewer features, the Apache licence.

Samples and raw reports are hypertables. Runs stay in native partitions: runs change until they end, so
chunks would have no advantage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, connection, transaction

from monitor.core.db.advisory_locks import session_lock_timeout
from monitor.depot.engines import continuous_aggregates
from monitor.depot.engines.engine import ALL_SERIES, Partition, SeriesHours
from monitor.depot.engines.postgres import PostgresEngine, drop_with

COMPRESS_AFTER = timedelta(days=7)  # rows that arrive later are few enough to insert into compressed chunks
COMPRESSED = ("monitor_sample", *continuous_aggregates.NAMES)

_IS_HYPERTABLE = "SELECT EXISTS (SELECT FROM timescaledb_information.hypertables WHERE hypertable_name = %s)"
_CHUNKS = """
SELECT format('%%I.%%I', chunk_schema, chunk_name), range_start, range_end, total_bytes, is_compressed
FROM timescaledb_information.chunks JOIN chunks_detailed_size(%(table)s) USING (chunk_schema, chunk_name)
WHERE hypertable_name = %(table)s ORDER BY range_start
"""
_DROP = "SELECT drop_chunks(%s::regclass, newer_than => %s::timestamptz, older_than => %s::timestamptz)"
_OLD_CHUNKS = (
    "SELECT format('%%s', chunk) FROM show_chunks(%s::regclass, older_than => %s::timestamptz) AS chunk"
)
_COMPRESS = "SELECT compress_chunk(%s::regclass, if_not_compressed => true)"
_COUNT_SERIES = "SELECT count(*) FROM monitor_series"
_COMPLETE_FROM = "SELECT max(gone_before) FROM monitor_retentioncutoff WHERE kind = 'samples'"


class ApacheTimescaleEngine(PostgresEngine):
    """TimescaleDB under the Apache licence: samples and raw reports are hypertables, rollups are tables."""

    name = "TimescaleDB, Apache licence"

    def partitions(self, table: str) -> list[Partition]:
        if not _is_hypertable(table):
            return super().partitions(table)
        with connection.cursor() as cursor:
            cursor.execute(_CHUNKS, {"table": table})
            return [
                Partition(table, name, start, end, size, is_compressed)
                for name, start, end, size, is_compressed in cursor.fetchall()
            ]

    def drop(self, partition: Partition, is_needed: Callable[[], bool]) -> bool:
        if not _is_hypertable(partition.table):
            return super().drop(partition, is_needed)
        return drop_with(_DROP, [partition.table, partition.start, partition.end], partition, is_needed)


class TimescaleEngine(ApacheTimescaleEngine):
    """TimescaleDB under the Timescale licence: chunks are compressed, rollups are continuous aggregates."""

    name = "TimescaleDB"
    sparse = 0  # a continuous aggregate has every hour

    def prepare_ahead(self, now: datetime) -> None:
        super().prepare_ahead(now)
        for table in COMPRESSED:
            _compress_chunks(table, now - COMPRESS_AFTER)

    def drop_rollups(self, start: datetime, end: datetime) -> None:
        """Drop whole chunks: writing to a compressed chunk takes three times as long as filling a new one.

        A chunk stays if it holds rollups of deleted samples, or if a reader has locked it.
        """
        complete_from = _fetch_value(_COMPLETE_FROM)
        with suppress(OperationalError), session_lock_timeout():
            continuous_aggregates.drop_chunks(
                start if complete_from is None else max(start, complete_from), end
            )

    def roll_up(self, dirty: Sequence[SeriesHours]) -> None:
        """Refresh the hours that are dirty in at least half of the series; write other rollups to the view.

        A refresh computes an hour for all series, so it is wasteful if few series have late data. If samples
        were deleted, a refresh would delete their rollups. A refresh cannot run in a transaction.
        """
        refreshed = set() if connection.in_atomic_block else _refreshable(dirty)
        continuous_aggregates.refresh(refreshed)
        rest = [
            SeriesHours(each.series, [hour for hour in each.hours if hour not in refreshed]) for each in dirty
        ]
        with transaction.atomic():
            super().roll_up([each for each in rest if each.hours])


def _is_hypertable(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_IS_HYPERTABLE, [table])
        return bool(cursor.fetchone()[0])


def _compress_chunks(table: str, before: datetime) -> None:
    """Compress the chunks of *table* that end before *before*, each in its own transaction.

    Compressed chunks to which rows were added are compressed again.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OLD_CHUNKS, [table, before])
        for (chunk,) in cursor.fetchall():
            cursor.execute(_COMPRESS, [chunk])


def _refreshable(dirty: Iterable[SeriesHours]) -> set[datetime]:
    """Return the hours that are dirty in at least half of the series and whose samples are all kept."""
    series_counts: Counter[datetime] = Counter()
    hours: set[datetime] = set()
    for each in dirty:
        if each.series == ALL_SERIES:
            hours.update(each.hours)
        else:
            series_counts.update(each.hours)
    series = _fetch_value(_COUNT_SERIES)
    hours |= {hour for hour, count in series_counts.items() if 2 * count >= series}
    complete_from = _fetch_value(_COMPLETE_FROM)
    return {hour for hour in hours if complete_from is None or hour >= complete_from}


def _fetch_value(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]
