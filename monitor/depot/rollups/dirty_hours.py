"""Marks of stale hours (``stale``), as who rolls up takes them.

He reads marks, makes the rollups, and takes away those very marks: what changes meanwhile leaves a mark of
its own. As long as there is one, samples are read instead.

Merging and deleting gathered marks takes ``AdvisoryLock.DIRTY_HOURS`` for a short time; computing rollups
and adding new marks do not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from monitor.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.engines.engine import ALL_SERIES, SeriesHours

# A new one takes the place of one that was gathered: who rolls that up meanwhile does not know of the change,
# and takes away the old one only.
_GATHER = """
WITH new AS (
    DELETE FROM monitor_dirtyhour WHERE id IN (
        SELECT id FROM monitor_dirtyhour WHERE NOT gathered ORDER BY id LIMIT %s
    ) RETURNING series_id, hour
), replaced AS (
    DELETE FROM monitor_dirtyhour AS had USING new
    WHERE had.series_id = new.series_id AND had.hour = new.hour AND had.gathered
), put_together AS (
    INSERT INTO monitor_dirtyhour (series_id, hour, gathered) SELECT DISTINCT series_id, hour, true FROM new
)
SELECT series_id, hour FROM new
"""
_MARK_EVERY = """
WITH covered AS (
    DELETE FROM monitor_dirtyhour WHERE gathered AND series_id <> %s AND hour >= %s AND hour < %s
)
INSERT INTO monitor_dirtyhour (series_id, hour, gathered)
SELECT %s, hour, true FROM generate_series(date_trunc('hour', %s, 'UTC'), %s, interval '1 hour') AS hour
WHERE hour < %s ORDER BY hour
"""
# With a mark go all others of its series and its day: together they are rolled up once.
_OLDEST = """
WITH first AS MATERIALIZED (
    SELECT DISTINCT series_id, date_trunc('day', hour, 'UTC') AS day
    FROM (
        SELECT series_id, hour FROM monitor_dirtyhour
        WHERE gathered AND hour < %(before)s AND {whose} ORDER BY id LIMIT %(at_most)s
    ) AS oldest
)
SELECT mark.id, mark.series_id, mark.hour
FROM first JOIN monitor_dirtyhour AS mark ON mark.series_id = first.series_id
    AND mark.hour >= day AND mark.hour < day + interval '24 hours' AND mark.hour < %(before)s
WHERE gathered
"""
_OF_SOME, _OF_EVERY = f"series_id <> {ALL_SERIES}", f"series_id = {ALL_SERIES}"
_COUNT = "SELECT count(DISTINCT hour) FROM monitor_dirtyhour WHERE series_id = %s"
_FORGET = "DELETE FROM monitor_dirtyhour WHERE id = ANY (%s)"


@dataclass(frozen=True)
class Marks:
    """What is to be rolled up, and the keys of the marks that say so."""

    hours: Sequence[SeriesHours]
    ids: Sequence[int]

    def __bool__(self) -> bool:
        return bool(self.ids)


def gather(at_most: int) -> list[tuple[int, datetime]]:
    """Put the oldest new marks together, *at_most* so many: the key of the series, and the hour, of each.

    Part of the caller's transaction: others who gather wait for its end, and know at least what he did.
    """
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_GATHER, [at_most])
        return list(cursor.fetchall())


@transaction.atomic
def mark_every(start: datetime, end: datetime) -> None:
    """No rollup from *start* until before *end* is to be trusted, whosever it is: in place of what was
    gathered of single series there."""
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_MARK_EVERY, [ALL_SERIES, start, end, ALL_SERIES, start, end, end])


def some(*, before: datetime, at_most: int) -> Marks:
    """The oldest gathered marks, of hours that begin *before*: *at_most* so many, and others of their days.

    Those of ``ALL_SERIES`` series are read by ``every`` alone.
    """
    return _oldest(_OF_SOME, before, at_most)


def every(*, before: datetime, days: int) -> Marks:
    """The oldest marks of ``ALL_SERIES`` series, of so many *days* or fewer."""
    return _oldest(_OF_EVERY, before, 24 * days - 23)


def every_left() -> int:
    """In how many hours all series wait."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [ALL_SERIES])
        return int(cursor.fetchone()[0])


@transaction.atomic
def forget(marks: Marks) -> None:
    """Take *marks* away, and no others."""
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [list(marks.ids)])


def _oldest(whose: str, before: datetime, at_most: int) -> Marks:
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST.format(whose=whose), {"before": before, "at_most": at_most})
        found = cursor.fetchall()
    hours: dict[int, set[datetime]] = defaultdict(set)
    for _, series, hour in found:
        hours[series].add(hour)
    stale = [SeriesHours(series, sorted(its)) for series, its in sorted(hours.items())]
    return Marks(stale, [pk for pk, _, _ in found])
