"""Rollups that we make ourselves: what samples come to is computed anew, day by day of each metric."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from monitor.depot.engines.engine import EVERY, Hours

DAY = timedelta(days=1)
# The samples of a day with so many are read as quickly as the rollups of its hours, which would take more
# space than they do: no hours are kept of it. Of other days all hours are.
SPARSE = 48
SERIES_DAYS_AT_ONCE = 5_000

# All metrics of the series, for each of the days; not where samples have been taken away, and what they once
# came to is final.
_METRICS = """
SELECT metric.id AS metric_id, day
FROM unnest(%(series)s::bigint[], %(days)s::timestamptz[]) AS stale (series_id, day)
JOIN monitor_segment AS segment ON segment.series_id = stale.series_id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
WHERE NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS horizon
    WHERE horizon.series_id = stale.series_id AND kind = 'samples' AND gone_before > day
)
ORDER BY metric.id, day
"""
_ALL_METRICS = """
SELECT metric.id AS metric_id, day
FROM unnest(%(days)s::timestamptz[]) AS stale (day)
CROSS JOIN monitor_metric AS metric
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
WHERE NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS horizon
    WHERE horizon.series_id = segment.series_id AND kind = 'samples' AND gone_before > day
)
ORDER BY metric.id, day
"""
# A reporter may make up numbers whose squares no number could hold: see ``monitor.depot.rollups.combine``.
_SANE = "least(greatest(value, -1e150), 1e150)"
# Keys are in the order of values: sorted is what is there already.
COMES_TO = f"""
count(*)::integer AS n,
(count(*) FILTER (WHERE passed))::integer AS passed,
avg({_SANE}) FILTER (WHERE passed) AS mean,
min(value) FILTER (WHERE passed) AS min,
max(value) FILTER (WHERE passed) AS max,
stddev_samp({_SANE}) FILTER (WHERE passed) AS stdev,
array_agg(monitor_sketch_key(value) ORDER BY value) FILTER (WHERE passed) AS sketch
"""
# Metric by metric and day by day, by the index, whatever the planner knows of a table that has just been
# filled; the bounds, which are numbers, let it look at the parts that they are in only.
_SAMPLES = """
FROM monitor_sample AS sample
WHERE sample.metric_id = wanted.metric_id AND sample.time >= day AND sample.time < day + interval '24 hours'
    AND sample.time >= %(start)s AND sample.time < %(end)s
"""
_COLUMNS = "metric_id, bucket, n, passed, mean, min, max, stdev, sketch"
_REPLACED = ", ".join(f"{name} = EXCLUDED.{name}" for name in _COLUMNS.split(", ")[2:])
_WRITE = """
WITH wanted AS MATERIALIZED ({metrics}), written AS (
    INSERT INTO {table} AS rollup ({columns})
    SELECT metric_id, bucket, n, passed, mean, min, max, stdev, sketch
    FROM {found} CROSS JOIN LATERAL (SELECT {bucket} AS bucket, {comes_to} {samples} {group}) AS made
    WHERE n > 0
    ON CONFLICT (metric_id, bucket) DO UPDATE SET {replaced}
    RETURNING metric_id, bucket
)
SELECT had.metric_id, had.bucket FROM {table} AS had JOIN wanted
ON had.metric_id = wanted.metric_id AND date_trunc('day', had.bucket, 'UTC') = day
WHERE had.bucket >= %(start)s AND had.bucket < %(end)s
    AND NOT EXISTS (
        SELECT FROM written WHERE written.metric_id = had.metric_id AND written.bucket = had.bucket
    )
"""
# By the metrics themselves: what of others is compressed beside them stays so.
_DELETE = """
DELETE FROM {table} AS rollup
USING unnest(%(metrics)s::bigint[], %(buckets)s::timestamptz[]) AS gone (metric_id, bucket)
WHERE rollup.metric_id = gone.metric_id AND rollup.bucket = gone.bucket
    AND rollup.metric_id = ANY (%(metrics)s)
    AND rollup.bucket >= %(start)s AND rollup.bucket < %(end)s
"""
_DENSE = """(
    SELECT wanted.* FROM wanted JOIN monitor_dayrollup AS whole
    ON whole.metric_id = wanted.metric_id AND whole.bucket = day AND whole.n > %(sparse)s
) AS wanted"""


def _write(table: str, metrics: str, found: str, bucket: str, group: str) -> str:
    return _WRITE.format(
        table=table,
        metrics=metrics,
        found=found,
        bucket=bucket,
        group=group,
        columns=_COLUMNS,
        comes_to=COMES_TO,
        samples=_SAMPLES,
        replaced=_REPLACED,
    )


def roll(stale: Sequence[Hours], *, sparse: int = SPARSE) -> None:
    """Make the rollups of these hours' days anew; those of days that have no samples go.

    With ``sparse=0`` hours are kept of every day, as is needed where they are to outlive its samples.
    """
    days = sorted({(_midnight(hour), of.series) for of in stale for hour in of.hours})
    every = [day for day, series in days if series == EVERY]
    if every:
        _roll(_ALL_METRICS, every, sparse)
    covered = set(every)
    rest = [(day, series) for day, series in days if day not in covered]
    for at in range(0, len(rest), SERIES_DAYS_AT_ONCE):
        some, series = zip(*rest[at : at + SERIES_DAYS_AT_ONCE], strict=True)
        _roll(_METRICS, list(some), sparse, series=list(series))


def _roll(metrics: str, days: Sequence[datetime], sparse: int, **wanted: list[int]) -> None:
    bounds = {"start": min(days), "end": max(days) + DAY}
    told: dict[str, Any] = {"days": days, **bounds, "sparse": sparse, **wanted}
    hour = "date_trunc('hour', time, 'UTC')"
    with transaction.atomic():
        _replace("monitor_dayrollup", _write("monitor_dayrollup", metrics, "wanted", "day", ""), told)
        hours = _write("monitor_hourrollup", metrics, _DENSE, hour, f"GROUP BY {hour}")
        _replace("monitor_hourrollup", hours, told)


def _replace(table: str, write: str, told: dict[str, Any]) -> None:
    """Write what there is, and take away what that says is no more, which is rare."""
    with connection.cursor() as cursor:
        cursor.execute(write, told)
        if gone := cursor.fetchall():
            metrics, buckets = zip(*gone, strict=True)
            left = {**told, "metrics": list(metrics), "buckets": list(buckets)}
            cursor.execute(_DELETE.format(table=table), left)


def _midnight(hour: datetime) -> datetime:
    return hour.replace(hour=0, minute=0, second=0, microsecond=0)
