"""Compute rollups that are stored in tables: SQL aggregates the samples of dirty days, metric by metric."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from monitor.depot.engines.engine import ALL_SERIES, SeriesHours

DAY = timedelta(days=1)
# A day with at most SPARSE samples of a metric has no hourly rollups: they would take more space than the
# samples and would be read no faster. Other days have all their hours.
SPARSE = 48
BATCH_SERIES_DAYS = 5_000

# All metrics of the series on each day, without days whose samples were deleted: their rollups are final.
_METRICS = """
SELECT metric.id AS metric_id, day
FROM unnest(%(series)s::bigint[], %(days)s::timestamptz[]) AS dirty (series_id, day)
JOIN monitor_segment AS segment ON segment.series_id = dirty.series_id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
WHERE NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS cutoff
    WHERE cutoff.series_id = dirty.series_id AND kind = 'samples' AND gone_before > day
)
ORDER BY metric.id, day
"""
_ALL_METRICS = """
SELECT metric.id AS metric_id, day
FROM unnest(%(days)s::timestamptz[]) AS dirty (day)
CROSS JOIN monitor_metric AS metric
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
WHERE NOT EXISTS (
    SELECT FROM monitor_retentioncutoff AS cutoff
    WHERE cutoff.series_id = segment.series_id AND kind = 'samples' AND gone_before > day
)
ORDER BY metric.id, day
"""
# Squares of larger values overflow; ``monitor.depot.rollups.combine`` clamps to the same bound.
_CLAMPED = "least(greatest(value, -1e150), 1e150)"
# Sketch keys ascend with the values, so one sort serves both.
AGGREGATES = f"""
count(*)::integer AS n,
(count(*) FILTER (WHERE passed))::integer AS passed,
avg({_CLAMPED}) FILTER (WHERE passed) AS mean,
min(value) FILTER (WHERE passed) AS min,
max(value) FILTER (WHERE passed) AS max,
stddev_samp({_CLAMPED}) FILTER (WHERE passed) AS stdev,
array_agg(monitor_sketch_key(value) ORDER BY value) FILTER (WHERE passed) AS sketch
"""
# The lateral join reads by the index, metric by metric and day by day, even where a table that was just
# filled has no statistics yet; the constant bounds prune partitions.
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
    FROM {source} CROSS JOIN LATERAL (SELECT {bucket} AS bucket, {aggregates} {samples} {group}) AS aggregated
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
# The constant list of metrics keeps other metrics' compressed segments untouched.
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


def _write(table: str, metrics: str, source: str, bucket: str, group: str) -> str:
    return _WRITE.format(
        table=table,
        metrics=metrics,
        source=source,
        bucket=bucket,
        group=group,
        columns=_COLUMNS,
        aggregates=AGGREGATES,
        samples=_SAMPLES,
        replaced=_REPLACED,
    )


def roll_up(dirty: Sequence[SeriesHours], *, sparse: int = SPARSE) -> None:
    """Compute the rollups of all days with *dirty* hours; delete rollups whose samples no longer exist.

    A day with at most *sparse* samples of a metric has no hourly rollups of that metric; retention, which
    deletes samples but not their rollups, passes ``sparse=0``. Rollups of samples that retention has deleted
    stay unchanged.
    """
    days = sorted({(_midnight(hour), each.series) for each in dirty for hour in each.hours})
    full_days = [day for day, series in days if series == ALL_SERIES]
    if full_days:
        _roll_up_days(_ALL_METRICS, full_days, sparse)
    covered = set(full_days)
    rest = [(day, series) for day, series in days if day not in covered]
    for at in range(0, len(rest), BATCH_SERIES_DAYS):
        batch_days, batch_series = zip(*rest[at : at + BATCH_SERIES_DAYS], strict=True)
        _roll_up_days(_METRICS, list(batch_days), sparse, series=list(batch_series))


def _roll_up_days(metrics: str, days: Sequence[datetime], sparse: int, **series: list[int]) -> None:
    bounds = {"start": min(days), "end": max(days) + DAY}
    parameters: dict[str, Any] = {"days": days, **bounds, "sparse": sparse, **series}
    hour = "date_trunc('hour', time, 'UTC')"
    with transaction.atomic():
        _replace("monitor_dayrollup", _write("monitor_dayrollup", metrics, "wanted", "day", ""), parameters)
        hours = _write("monitor_hourrollup", metrics, _DENSE, hour, f"GROUP BY {hour}")
        _replace("monitor_hourrollup", hours, parameters)


def _replace(table: str, statement: str, parameters: dict[str, Any]) -> None:
    """Upsert rollups of *table* by *statement*; delete the obsolete rollups that the statement returns."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        if obsolete := cursor.fetchall():
            metrics, buckets = zip(*obsolete, strict=True)
            keys = {**parameters, "metrics": list(metrics), "buckets": list(buckets)}
            cursor.execute(_DELETE.format(table=table), keys)


def _midnight(hour: datetime) -> datetime:
    return hour.replace(hour=0, minute=0, second=0, microsecond=0)
