"""TimescaleDB: samples and raw reports in hypertables; what its own licence has, and what Apache's has.

Runs stay in native partitions: they change until they end, and a chunk would do nothing for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, connection, transaction

from monitor.db.advisory_locks import session_lock_timeout
from monitor.depot.engines import continuous_aggregates
from monitor.depot.engines.engine import EVERY, Hours, Part
from monitor.depot.engines.postgres import Plain, drop_with

LATE = timedelta(days=7)  # what comes later than this is rare enough to be put between compressed rows
COMPRESSED = ("monitor_sample", *continuous_aggregates.NAMES)

_IS_HYPERTABLE = "SELECT EXISTS (SELECT FROM timescaledb_information.hypertables WHERE hypertable_name = %s)"
_LISTED = """
SELECT format('%%I.%%I', chunk_schema, chunk_name), range_start, range_end, total_bytes, is_compressed
FROM timescaledb_information.chunks JOIN chunks_detailed_size(%(table)s) USING (chunk_schema, chunk_name)
WHERE hypertable_name = %(table)s ORDER BY range_start
"""
_DROP = "SELECT drop_chunks(%s::regclass, newer_than => %s::timestamptz, older_than => %s::timestamptz)"
_OLD = "SELECT format('%%s', chunk) FROM show_chunks(%s::regclass, older_than => %s::timestamptz) AS chunk"
_COMPRESS = "SELECT compress_chunk(%s::regclass, if_not_compressed => true)"
_SERIES = "SELECT count(*) FROM monitor_series"
_WHOLE_FROM = "SELECT max(gone_before) FROM monitor_retentioncutoff WHERE kind = 'samples'"


class Apache(Plain):
    """What Apache's licence has: hypertables; rollups are tables, as on plain PostgreSQL."""

    name = "TimescaleDB, Apache licence"

    def parts(self, table: str) -> list[Part]:
        if not _is_hypertable(table):
            return super().parts(table)
        with connection.cursor() as cursor:
            cursor.execute(_LISTED, {"table": table})
            return [Part(table, *row) for row in cursor.fetchall()]

    def drop(self, part: Part, is_needed: Callable[[], bool]) -> bool:
        if not _is_hypertable(part.table):
            return super().drop(part, is_needed)
        return drop_with(_DROP, [part.table, part.start, part.end], part, is_needed)


class Timescale(Apache):
    """All of it: chunks are compressed by metric once they are old, rollups are continuous aggregates."""

    name = "TimescaleDB"
    sparse = 0  # an aggregate has all hours

    def prepare_ahead(self, now: datetime) -> None:
        super().prepare_ahead(now)
        for table in COMPRESSED:
            _compress(table, now - LATE)

    def discard(self, start: datetime, end: datetime) -> None:
        """Whole chunks go: to write into one that is compressed takes three times as long. Those stay that
        have what is final, or that somebody is reading."""
        whole_from = _ask(_WHOLE_FROM)
        with suppress(OperationalError), session_lock_timeout():
            continuous_aggregates.discard(start if whole_from is None else max(start, whole_from), end)

    def roll(self, stale: Sequence[Hours]) -> None:
        """Refresh what is stale of most series, and roll the rest by hand, which a view lets us do.

        A refresh makes an hour anew for all series: too much where few are late, and too little where samples
        of others are gone, whose rollups it would take away. Nor can it be part of a transaction.
        """
        refreshed = set() if connection.in_atomic_block else _refreshable(stale)
        continuous_aggregates.refresh(refreshed)
        rest = [Hours(one.series, [hour for hour in one.hours if hour not in refreshed]) for one in stale]
        with transaction.atomic():
            super().roll([one for one in rest if one.hours])


def _is_hypertable(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_IS_HYPERTABLE, [table])
        return bool(cursor.fetchone()[0])


def _compress(table: str, before: datetime) -> None:
    """One chunk after the other, each in a transaction of its own; what came late is compressed as well."""
    with connection.cursor() as cursor:
        cursor.execute(_OLD, [table, before])
        for (chunk,) in cursor.fetchall():
            cursor.execute(_COMPRESS, [chunk])


def _refreshable(stale: Iterable[Hours]) -> set[datetime]:
    """The hours that are stale of every series, or of at least half of them, where no samples are gone."""
    whole_from = _ask(_WHOLE_FROM)
    return {hour for hour in _of_most(stale) if whole_from is None or hour >= whole_from}


def _of_most(stale: Iterable[Hours]) -> set[datetime]:
    series_of: Counter[datetime] = Counter()
    of_every: set[datetime] = set()
    for one in stale:
        if one.series == EVERY:
            of_every.update(one.hours)
        else:
            series_of.update(one.hours)
    series = _ask(_SERIES)
    return of_every | {hour for hour, count in series_of.items() if 2 * count >= series}


def _ask(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]
