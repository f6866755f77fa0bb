"""The SQL that stores computed days, and the sums of their months."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime

from monitor.analysis.availability.compute import ComputedDay
from monitor.analysis.availability.timelines import StatusSeconds
from monitor.core.db import binary

_DELETE_SERVICES = b"""
DELETE FROM monitor_siteday AS stored USING unnest(%b::bigint[], %b::date[]) AS new (site, day)
WHERE stored.site_id = new.site AND stored.day = new.day AND service <> ''
"""
_STORE = b"""
INSERT INTO monitor_siteday AS stored (site_id, day, service, up_seconds, unknown_seconds, scheduled_seconds,
    down_seconds, version_id, until, computed_at, is_dirty)
SELECT site, day, service, up, unknown, scheduled, down, version, until, %(now)b, false
FROM unnest(%(site)b::bigint[], %(day)b::date[], %(service)b::text[], %(up)b::int[], %(unknown)b::int[],
    %(scheduled)b::int[], %(down)b::int[], %(version)b::bigint[], %(until)b::timestamptz[])
    AS new (site, day, service, up, unknown, scheduled, down, version, until)
ORDER BY site, day, service
ON CONFLICT (site_id, day, service) DO UPDATE SET up_seconds = EXCLUDED.up_seconds,
    unknown_seconds = EXCLUDED.unknown_seconds, scheduled_seconds = EXCLUDED.scheduled_seconds,
    down_seconds = EXCLUDED.down_seconds, version_id = EXCLUDED.version_id, until = EXCLUDED.until,
    computed_at = EXCLUDED.computed_at, is_dirty = false
"""
_DELETE_SERVICE_MONTHS = b"""
DELETE FROM monitor_sitemonth AS stored USING unnest(%b::bigint[], %b::date[]) AS new (site, month)
WHERE stored.site_id = new.site AND stored.month = new.month AND service <> ''
"""
_SUM = b"""
INSERT INTO monitor_sitemonth (site_id, month, service, up_seconds, unknown_seconds, scheduled_seconds,
    down_seconds, created_at, has_late_data)
SELECT new.site, new.month, service, sum(up_seconds), sum(unknown_seconds), sum(scheduled_seconds),
    sum(down_seconds), %(now)b, false
FROM unnest(%(site)b::bigint[], %(month)b::date[]) AS new (site, month)
JOIN monitor_siteday AS each ON each.site_id = new.site AND each.day >= new.month
    AND each.day < (new.month + interval '1 month')::date
GROUP BY new.site, new.month, service
ON CONFLICT (month, site_id, service) DO UPDATE SET up_seconds = EXCLUDED.up_seconds,
    unknown_seconds = EXCLUDED.unknown_seconds, scheduled_seconds = EXCLUDED.scheduled_seconds,
    down_seconds = EXCLUDED.down_seconds
"""


def store(computed: Sequence[ComputedDay], now: datetime) -> None:
    """Replace the stored days, with their services, and the sums of their months."""
    if not computed:
        return
    days = [(each.wanted.site, each.wanted.day) for each in computed]
    months = sorted({(site, day.replace(day=1)) for site, day in days})
    with binary.cursor() as cursor:
        cursor.execute(_DELETE_SERVICES, _columns(days))
        cursor.execute(_STORE, {"now": now, **_rows(computed)})
        cursor.execute(_DELETE_SERVICE_MONTHS, _columns(months))
        sites, firsts = _columns(months)
        cursor.execute(_SUM, {"now": now, "site": sites, "month": firsts})


def _columns(pairs: Collection[tuple[int, date]]) -> list[list[object]]:
    return [list(column) for column in zip(*pairs, strict=True)]


def _rows(computed: Iterable[ComputedDay]) -> dict[str, list[object]]:
    """Return the columns of the rows of sites and services."""
    rows = [row for each in computed for row in _rows_of(each)]
    names = ("site", "day", "service", "up", "unknown", "scheduled", "down", "version", "until")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _rows_of(day: ComputedDay) -> Iterable[tuple[object, ...]]:
    for service, seconds in {"": day.seconds, **day.services}.items():
        yield day.wanted.site, day.wanted.day, service, *_numbers(seconds), day.wanted.version.pk, day.until


def _numbers(seconds: StatusSeconds) -> tuple[int, int, int, int]:
    return seconds.up, seconds.unknown, seconds.scheduled, seconds.down
