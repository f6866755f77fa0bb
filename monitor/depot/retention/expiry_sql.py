"""Find and delete data older than their retention, one kind at a time (``models.retention_cutoff``).

Every statement is about some series and a stretch of time, so that each is short and looks at few parts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from monitor.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.depot.engines.engine import Part
from monitor.models.retention_cutoff import DataKind

LONG_AGO, FAR_AHEAD = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Table:
    """Where one kind of data is: *time* is its column, *owners* joins each row to the series it is of."""

    name: str
    time: str
    owners: str
    is_parted: bool


_BY_METRIC = """
JOIN monitor_metric AS metric ON metric.id = kept.metric_id
JOIN monitor_segment AS owner ON owner.id = metric.segment_id
"""
# The bounds, once more, let the database look at the parts of both that they are in only.
_BY_RUN = """
JOIN monitor_run AS owner ON owner.id = kept.run_id AND owner.slot = kept.slot
    AND owner.slot >= %(start)s AND owner.slot < %(stop)s
"""
TABLES = {
    DataKind.REPORTS: Table("monitor_rawreport", "slot", _BY_RUN, is_parted=True),
    DataKind.SAMPLES: Table("monitor_sample", "time", _BY_METRIC, is_parted=True),
    DataKind.HOURLY: Table("monitor_hourrollup", "bucket", _BY_METRIC, is_parted=False),
    DataKind.DAILY: Table("monitor_dayrollup", "bucket", _BY_METRIC, is_parted=False),
}

_KEEPS = ", ".join(f"('{kind}', suite.keep_{kind}_days)" for kind in DataKind)
# From when on each series keeps what it has, as its suite says; it never goes back.
_WANTED = f"""
SELECT series.id AS series_id, suite.id AS suite_id, keeps.kind,
    greatest(horizon.kept_from, date_trunc('day', %(now)s, 'UTC') - keeps.days * interval '24 hours')
        AS kept_from
FROM monitor_series AS series
JOIN monitor_suite AS suite ON suite.id = series.suite_id
CROSS JOIN LATERAL (VALUES {_KEEPS}) AS keeps (kind, days)
LEFT JOIN monitor_retentioncutoff AS horizon ON horizon.series_id = series.id AND horizon.kind = keeps.kind
WHERE keeps.days IS NOT NULL OR horizon.kept_from > coalesce(horizon.gone_before, '-infinity')
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
_GROUPS = """
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
# Asked for before: where rows are compressed, all would be unpacked that a join might find.
_METRICS = """
SELECT coalesce(array_agg(metric.id), '{}') FROM monitor_metric AS metric
JOIN monitor_segment AS owner ON owner.id = segment_id WHERE series_id = ANY (%s)
"""
_OF_RUNS = """
DELETE FROM {table} AS kept USING monitor_run AS owner
WHERE kept.slot >= %(start)s AND kept.slot < %(stop)s AND owner.slot >= %(start)s AND owner.slot < %(stop)s
    AND owner.series_id = ANY (%(series)s) AND kept.run_id = owner.id AND kept.slot = owner.slot
"""
_GONE = """
UPDATE monitor_retentioncutoff SET gone_before = %(stop)s
WHERE kind = %(kind)s AND series_id = ANY (%(series)s) AND (gone_before IS NULL OR gone_before < %(stop)s)
"""
# By the index, in parts alone that are older than what has gone: of most there are none.
_LEFT_BEHIND = """
SELECT horizon.series_id, date_trunc('day', its.oldest, 'UTC'), gone_before
FROM monitor_retentioncutoff AS horizon
CROSS JOIN LATERAL (
    SELECT min(first.time) AS oldest FROM monitor_segment AS segment
    JOIN monitor_metric AS metric ON metric.segment_id = segment.id
    CROSS JOIN LATERAL (
        SELECT time FROM monitor_sample WHERE metric_id = metric.id AND time < gone_before
        ORDER BY time LIMIT 1
    ) AS first
    WHERE segment.series_id = horizon.series_id
) AS its
WHERE kind = 'samples' AND its.oldest IS NOT NULL ORDER BY horizon.series_id
"""
# Rows of a series that keeps them. What belongs to nobody any more is kept by nobody.
_NEEDED = """
SELECT EXISTS (
    SELECT FROM {table} AS kept {owners}
    LEFT JOIN monitor_retentioncutoff AS horizon
        ON horizon.series_id = owner.series_id AND horizon.kind = %(kind)s
    WHERE kept.{time} >= %(start)s AND kept.{time} < %(stop)s
        AND (horizon.kept_from IS NULL OR horizon.kept_from < %(stop)s)
)
"""
# What has not been gathered still tells what came last.
_UNMARK = "DELETE FROM monitor_dirtyhour WHERE gathered AND series_id = ANY (%s) AND hour >= %s AND hour < %s"
_GOING = f"""
SELECT wanted.suite_id, count(*), count(*) FILTER (WHERE kept.{{time}} < wanted.kept_from),
    min(kept.{{time}}) FILTER (WHERE kept.{{time}} < wanted.kept_from)
FROM {{table}} AS kept {{owners}}
LEFT JOIN ({_WANTED}) AS wanted ON wanted.series_id = owner.series_id AND wanted.kind = %(kind)s
WHERE kept.{{time}} >= %(start)s AND kept.{{time}} < %(stop)s
GROUP BY wanted.suite_id
"""  # noqa: S608
_LAST_WANTED = f"SELECT kind, max(kept_from) FROM ({_WANTED}) AS wanted GROUP BY kind"  # noqa: S608
# From metric to metric by the index: of each, only one row is looked at.
_STRAYS = """
WITH RECURSIVE there AS (
    (SELECT metric_id FROM {table} ORDER BY metric_id LIMIT 1)
    UNION ALL
    SELECT (SELECT metric_id FROM {table} WHERE metric_id > there.metric_id ORDER BY metric_id LIMIT 1)
    FROM there WHERE metric_id IS NOT NULL
)
SELECT metric_id FROM there
WHERE metric_id IS NOT NULL AND NOT EXISTS (SELECT FROM monitor_metric WHERE id = metric_id)
"""
_DELETE_STRAYS = "DELETE FROM {table} WHERE metric_id = ANY (%s)"
_SIZE = "SELECT pg_total_relation_size(%s::regclass)"


@dataclass(frozen=True)
class Group:
    """Series (their keys) of which the same stretch of time is to go: from *start* until before *stop*."""

    series: Sequence[int]
    start: datetime
    stop: datetime


@dataclass(frozen=True)
class Going:
    """What of a suite (its key; None: of those that keep everything) is in a part, and of it would go."""

    suite: int | None
    rows: int
    going: int
    oldest: datetime | None


def advance(now: datetime) -> None:
    """Move the horizons of all series to where their suites want them at *now*."""
    with connection.cursor() as cursor:
        cursor.execute(_ADVANCE, {"now": now})


def pending() -> bool:
    """Whether something is before a horizon that has not been taken away."""
    return bool(_ask(_PENDING))


def this_moment() -> datetime:
    """By the clock of the database."""
    moment: datetime = _ask("SELECT clock_timestamp()")
    return moment


def older_transactions(than: datetime) -> int:
    """How many others are under way that began before *than*."""
    return int(_ask(_OLDER_TRANSACTIONS, [than]))


def groups(kind: DataKind, part: Part) -> list[Group]:
    """Of which series what is to go, within *part*, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_GROUPS, {"kind": kind, "start": part.start, "stop": part.end})
        return [Group(*row) for row in cursor.fetchall()]


def oldest(kind: DataKind, group: Group) -> datetime | None:
    """When the first begins of what *group* still has there."""
    found: datetime | None = _ask(_filled(_OLDEST, kind), _bounds(group.series, group.start, group.stop))
    return found


def delete(kind: DataKind, series: Collection[int], start: datetime, stop: datetime) -> int:
    """Take away what *series* have from *start* until before *stop*; how many rows that were."""
    bounds = _bounds(series, start, stop)
    statement = _OF_RUNS
    if kind != DataKind.REPORTS:
        statement = _OF_METRICS
        bounds["metrics"] = _ask(_METRICS, [bounds["series"]])
    with connection.cursor() as cursor:
        cursor.execute(_filled(statement, kind), bounds)
        return int(cursor.rowcount)


def gone(kind: DataKind, series: Collection[int], stop: datetime) -> None:
    """What *series* had before *stop* has been taken away."""
    with connection.cursor() as cursor:
        cursor.execute(_GONE, {"kind": kind, "series": list(series), "stop": stop})


def unmark(series: Collection[int], start: datetime, stop: datetime) -> None:
    """Rollups of *series* from *start* until before *stop* are what they shall be.

    Part of the caller's transaction: until its end nobody gathers marks.
    """
    lock_until_commit(AdvisoryLock.DIRTY_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(_UNMARK, [list(series), start, stop])


def left_behind() -> list[Group]:
    """Samples that count as gone, and are still there."""
    with connection.cursor() as cursor:
        cursor.execute(_LEFT_BEHIND)
        return [Group([series], start, stop) for series, start, stop in cursor.fetchall()]


def is_needed(kind: DataKind, part: Part) -> bool:
    """Whether *part* has anything that a series keeps."""
    return bool(_ask(_filled(_NEEDED, kind), {"kind": kind, "start": part.start, "stop": part.end}))


def going(kind: DataKind, part: Part, now: datetime) -> list[Going]:
    """What is in *part*, by suite, and what of it would go at *now*."""
    told: dict[str, Any] = {"kind": kind, "start": part.start, "stop": part.end, "now": now}
    with connection.cursor() as cursor:
        cursor.execute(_filled(_GOING, kind), told)
        return [Going(*row) for row in cursor.fetchall()]


def kept_from(now: datetime) -> dict[str, datetime]:
    """By kind, from when on all series keep what they have at *now*; without kinds that are kept for ever."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_WANTED, {"now": now})
        return dict(cursor.fetchall())


def whole(kind: DataKind) -> Part:
    """A table that has no parts, as one."""
    name = TABLES[kind].name
    return Part(name, name, LONG_AGO, FAR_AHEAD, int(_ask(_SIZE, [name])))


def strays(kind: DataKind) -> list[int]:
    """The metrics that rows are of although they are gone."""
    with connection.cursor() as cursor:
        cursor.execute(_filled(_STRAYS, kind))
        return [metric for (metric,) in cursor.fetchall()]


def delete_strays(kind: DataKind, metrics: Collection[int]) -> int:
    """Take away what is of *metrics*; how many rows that were."""
    with connection.cursor() as cursor:
        cursor.execute(_filled(_DELETE_STRAYS, kind), [list(metrics)])
        return int(cursor.rowcount)


def _filled(statement: str, kind: DataKind) -> str:
    table = TABLES[kind]
    return statement.format(table=table.name, time=table.time, owners=table.owners)


def _bounds(series: Collection[int], start: datetime, stop: datetime) -> dict[str, Any]:
    return {"series": list(series), "start": start, "stop": stop}


def _ask(statement: str, told: Any = None) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, told)
        return cursor.fetchone()[0]
