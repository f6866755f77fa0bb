"""Merge, select and delete dirty hours, which ``mark_dirty`` writes.

The worker deletes only the dirty-hour rows it read, so changes made meanwhile survive. While an hour is
dirty, queries read its samples instead of its rollups.

Merging and deleting takes ``AdvisoryLock.DIRTY_HOURS`` for a short time; computing rollups and marking new
dirty hours do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.engines.engine import ALL_SERIES, SeriesHours

# A new row replaces the gathered row of the same hour. So a worker that is rolling up this hour, without the
# latest change, later deletes only the old row: the hour stays dirty.
_GATHER = """
WITH new AS (
    DELETE FROM monitor_dirtyhour WHERE id IN (
        SELECT id FROM monitor_dirtyhour WHERE NOT gathered ORDER BY id LIMIT %s
    ) RETURNING series_id, hour
), replaced AS (
    DELETE FROM monitor_dirtyhour AS old USING new
    WHERE old.series_id = new.series_id AND old.hour = new.hour AND old.gathered
), merged AS (
    INSERT INTO monitor_dirtyhour (series_id, hour, gathered) SELECT DISTINCT series_id, hour, true FROM new
)
SELECT series_id, hour FROM new
"""
_ADD_ALL_SERIES = """
WITH covered AS (
    DELETE FROM monitor_dirtyhour WHERE gathered AND series_id <> %s AND hour >= %s AND hour < %s
)
INSERT INTO monitor_dirtyhour (series_id, hour, gathered)
SELECT %s, hour, true FROM generate_series(date_trunc('hour', %s, 'UTC'), %s, interval '1 hour') AS hour
WHERE hour < %s ORDER BY hour
"""
# Selects the oldest dirty hours and the others of the same series and days: a day is rolled up as a whole.
_OLDEST = """
WITH first AS MATERIALIZED (
    SELECT DISTINCT series_id, date_trunc('day', hour, 'UTC') AS day
    FROM (
        SELECT series_id, hour FROM monitor_dirtyhour
        WHERE gathered AND hour < %(before)s AND {condition} ORDER BY id LIMIT %(at_most)s
    ) AS oldest
)
SELECT dirty.id, dirty.series_id, dirty.hour
FROM first JOIN monitor_dirtyhour AS dirty ON dirty.series_id = first.series_id
    AND dirty.hour >= day AND dirty.hour < day + interval '24 hours' AND dirty.hour < %(before)s
WHERE gathered
"""
_OF_SINGLE_SERIES, _OF_ALL_SERIES = f"series_id <> {ALL_SERIES}", f"series_id = {ALL_SERIES}"
_COUNT = "SELECT count(DISTINCT hour) FROM monitor_dirtyhour WHERE series_id = %s"
_DELETE = "DELETE FROM monitor_dirtyhour WHERE id = ANY (%s)"


@dataclass(frozen=True)
class DirtyBatch:
    """Dirty *hours* to be rolled up, and the *ids* (primary keys) of their rows."""

    hours: Sequence[SeriesHours]
    ids: Sequence[int]

    def __bool__(self) -> bool:
        return bool(self.ids)


def gather(at_most: int) -> list[tuple[int, datetime]]:
    """Merge the *at_most* oldest new rows into gathered rows, one per series and hour.

    Return (key of the series, hour) of each new row. Runs in the caller's transaction: concurrent callers
    wait until that transaction ends.
    """
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_GATHER, [at_most])
        return list(cursor.fetchall())


@transaction.atomic
def add_all_series(start: datetime, end: datetime) -> None:
    """Mark all hours from *start* until before *end* as dirty for all series.

    The new rows replace the gathered rows of single series for these hours.
    """
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_ADD_ALL_SERIES, [ALL_SERIES, start, end, ALL_SERIES, start, end, end])


def oldest_of_single_series(*, before: datetime, at_most: int) -> DirtyBatch:
    """Return the oldest gathered hours that are dirty for single series, and other hours of their days.

    At most *at_most* hours are selected; all other gathered hours of the same series and days are added. Only
    hours that start earlier than *before* are returned.
    """
    return _oldest(_OF_SINGLE_SERIES, before, at_most)


def oldest_of_all_series(*, before: datetime, days: int) -> DirtyBatch:
    """Return the oldest hours that are dirty for all series, about *days* days, all earlier than *before*."""
    return _oldest(_OF_ALL_SERIES, before, 24 * days - 23)


def count_of_all_series() -> int:
    """Count the hours that are dirty for all series."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [ALL_SERIES])
        return int(cursor.fetchone()[0])


@transaction.atomic
def delete(batch: DirtyBatch) -> None:
    """Delete the rows of *batch*, and no others."""
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_DELETE, [list(batch.ids)])


def _oldest(condition: str, before: datetime, at_most: int) -> DirtyBatch:
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST.format(condition=condition), {"before": before, "at_most": at_most})
        rows = cursor.fetchall()
    hours: dict[int, set[datetime]] = defaultdict(set)
    for _, series, hour in rows:
        hours[series].add(hour)
    dirty = [SeriesHours(series, sorted(of_series)) for series, of_series in sorted(hours.items())]
    return DirtyBatch(dirty, [pk for pk, _, _ in rows])
