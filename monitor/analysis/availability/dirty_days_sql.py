"""The SQL of outdated days: marks of the database's triggers in, ``SiteDay.is_dirty`` out.

All functions are called while ``AdvisoryLock.AVAILABILITY`` is held, in the transaction that computes the
days: a change that is committed later has a mark of its own, which stays for the next call.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import connection
from psycopg.rows import class_row

from monitor.core.db import binary

MARKS = 20_000  # per call
# A result may count up to three days later, and a new slot ends the validity of earlier results.
_REACH = "3"

_TAKE = """
DELETE FROM monitor_dirtyday WHERE id IN (SELECT id FROM monitor_dirtyday ORDER BY id LIMIT %s)
RETURNING series_id, site_id, first, last
"""
_IS_OPEN = """NOT EXISTS (
    SELECT FROM monitor_sitemonth AS month WHERE month.site_id = {site} AND service = ''
        AND month.month = date_trunc('month', {day})::date AND published_at IS NOT NULL)"""
_COLUMNS = "site_id, service, up_seconds, unknown_seconds, scheduled_seconds, down_seconds, day, is_dirty"
_RESULTS = f"""
WITH changed AS MATERIALIZED (
    SELECT DISTINCT resource.site_id, mark.day
    FROM unnest(%(series)s::bigint[], %(days)s::date[]) AS mark (series, day)
    JOIN monitor_binding AS binding ON binding.series_id = mark.series
    JOIN monitor_resource AS resource ON resource.id = binding.resource_id
    WHERE mark.day <= %(today)s
), created AS (
    INSERT INTO monitor_siteday ({_COLUMNS})
    SELECT DISTINCT site_id, '', 0, 0, 0, 0, each::date, true
    FROM changed CROSS JOIN generate_series(date_trunc('month', changed.day),
        least(date_trunc('month', changed.day) + interval '1 month - 1 day', %(today)s),
        interval '1 day') AS each
    WHERE {_IS_OPEN.format(site="changed.site_id", day="changed.day")}
    ON CONFLICT DO NOTHING
), late AS (
    UPDATE monitor_sitemonth AS month SET has_late_data = true FROM changed
    WHERE month.site_id = changed.site_id AND service = '' AND published_at IS NOT NULL
        AND month.month = date_trunc('month', changed.day)::date AND NOT has_late_data
)
UPDATE monitor_siteday AS stored SET is_dirty = true FROM changed
WHERE stored.site_id = changed.site_id AND service = '' AND NOT is_dirty
    AND stored.day BETWEEN changed.day - {_REACH} AND changed.day + {_REACH}
    AND {_IS_OPEN.format(site="stored.site_id", day="stored.day")}
"""  # noqa: S608 - constants from above
_PERIODS = f"""
WITH mark AS MATERIALIZED (
    SELECT DISTINCT site, first, last FROM unnest(%(sites)s::bigint[], %(firsts)s::date[], %(lasts)s::date[])
        AS mark (site, first, last)
), late AS (
    UPDATE monitor_sitemonth AS month SET has_late_data = true FROM mark
    WHERE month.site_id = mark.site AND service = '' AND published_at IS NOT NULL AND NOT has_late_data
        AND month.month BETWEEN date_trunc('month', mark.first)::date AND mark.last
)
UPDATE monitor_siteday AS stored SET is_dirty = true FROM mark
WHERE (mark.site IS NULL OR mark.site = stored.site_id) AND service = '' AND NOT is_dirty
    AND stored.day BETWEEN mark.first AND mark.last
    AND {_IS_OPEN.format(site="stored.site_id", day="stored.day")}
"""  # noqa: S608 - constants from above
_FORGET = """
DELETE FROM monitor_dirtyday WHERE site_id = ANY (%(sites)s) AND first >= %(first)s AND last <= %(last)s
"""
_CREATE = f"""
INSERT INTO monitor_siteday ({_COLUMNS})
SELECT site.id, '', 0, 0, 0, 0, each::date, true
FROM monitor_site AS site CROSS JOIN generate_series(%(first)s::timestamp, %(last)s, interval '1 day') AS each
WHERE (%(sites)s::bigint[] IS NULL OR site.id = ANY (%(sites)s))
    AND NOT EXISTS (  -- a conflict would use up a key
        SELECT FROM monitor_siteday AS stored
        WHERE stored.site_id = site.id AND stored.day = each::date AND service = ''
    )
ON CONFLICT DO NOTHING
"""  # noqa: S608 - a constant from above
_GROWING = """
UPDATE monitor_siteday SET is_dirty = true
WHERE service = '' AND NOT is_dirty AND day BETWEEN %(first)s AND %(today)s
    AND until < (day + 1)::timestamp AT TIME ZONE 'UTC' AND (day < %(today)s OR computed_at <= %(before)s)
"""
_DIRTY = b"""
SELECT site_id AS site, day, version_id AS version, until FROM monitor_siteday
WHERE is_dirty AND service = '' AND day <= %(newest)b::date AND day > %(newest)b::date - %(days)b::int
ORDER BY day, site_id
"""


@dataclass(frozen=True)
class StoredDay:
    """A day of a site, the key of the version that it was computed by, and until when it was counted."""

    site: int
    day: date
    version: int | None
    until: datetime | None


def take_marks(today: date) -> bool:
    """Mark stored days as dirty for the oldest marks, and create the days of new months up to *today*.

    Return whether more marks may be left. Days of published months stay; their months note late data.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [MARKS])
        marks = cursor.fetchall()
        results = [(series, first) for series, _, first, _ in marks if series is not None]
        periods = [(site, first, last) for series, site, first, last in marks if series is None]
        if results:
            series, days = zip(*set(results), strict=True)
            cursor.execute(_RESULTS, {"series": list(series), "days": list(days), "today": today})
        if periods:
            sites, firsts, lasts = zip(*set(periods), strict=True)
            cursor.execute(
                _PERIODS, {"sites": list(sites), "firsts": list(firsts), "lasts": list(lasts), "today": today}
            )
    return len(marks) == MARKS


def forget_marks(sites: Collection[int], first: date, last: date) -> None:
    """Delete the marks of *sites* in a period that the caller computes in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"sites": list(sites), "first": first, "last": last})


def create_days(first: date, last: date, sites: Collection[int] | None = None) -> None:
    """Create the days of *sites* (None: of all sites) that do not exist yet, as dirty ones."""
    with connection.cursor() as cursor:
        keys = None if sites is None else list(sites)
        cursor.execute(_CREATE, {"first": first, "last": last, "sites": keys})


def mark_growing(today: date, before: datetime, back: timedelta) -> None:
    """Mark as dirty the days that were not over when they were computed; today only if that is *before*."""
    with connection.cursor() as cursor:
        cursor.execute(_GROWING, {"first": today - back, "today": today, "before": before})


def dirty_days(newest: date, days: int) -> list[StoredDay]:
    """Return the dirty days of the *days* days up to *newest*."""
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(StoredDay)
        return cursor.execute(_DIRTY, {"newest": newest, "days": days}, binary=True).fetchall()
