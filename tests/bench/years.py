"""Load three years of hourly samples of a thousand series, once per process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from django.db import connection

from monitor.core.db.partitions import range_of
from monitor.depot.engines import engine
from monitor.depot.rollups.worker import rebuild
from monitor.models import Metric, Segment, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from tests.bench.base import seconds

SERIES = 1000
DAYS = 1095
NAME = "of-years"  # prefix of the names of the series
END = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)

# In the order of arrival, hour by hour. Indexes are created when all rows are loaded.
_CREATE = "CREATE TABLE {part} (LIKE monitor_sample)"
_FILL = """
INSERT INTO {part} (metric_id, time, known_at, value, passed)
SELECT metric_id, time, time + interval '40 seconds', 20 + metric_id %% 97 + 5 * random() - ln(1 - random()),
    random() > 0.02
FROM generate_series(%s, %s - interval '1 hour', interval '1 hour') AS time, unnest(%s::bigint[]) AS metric_id
"""
_ATTACH = "ALTER TABLE monitor_sample ATTACH PARTITION {part} FOR VALUES FROM (%s) TO (%s)"
_BYTES = """
SELECT pg_total_relation_size(%(table)s)
    + coalesce((SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
        WHERE inhparent = %(table)s::regclass), 0)
"""


@dataclass(frozen=True)
class Years:
    """A metric per series with hourly samples from *start* until *end*."""

    metrics: list[Metric]
    start: datetime
    end: datetime
    load_seconds: float
    roll_seconds: float
    raw_bytes: int
    rolled_bytes: int

    @property
    def samples(self) -> int:
        return len(self.metrics) * ((self.end - self.start) // HOUR)


@cache
def loaded(series: int = SERIES, days: int = DAYS) -> Years:
    """Load the samples and compute their rollups; later calls return the first result."""
    start = END - timedelta(days=days)
    metrics = _metrics(series, start)
    load_seconds = seconds(lambda: _load(metrics, start))
    roll_seconds = seconds(lambda: _roll(start))
    raw, hours, days_bytes = (_bytes(f"monitor_{name}") for name in ("sample", "hourrollup", "dayrollup"))
    return Years(metrics, start, END, load_seconds, roll_seconds, raw, hours + days_bytes)


def _metrics(count: int, start: datetime) -> list[Metric]:
    names = [f"{NAME}-{number}" for number in range(count)]
    definitions = [SeriesDefinition(name, "noop", {"target": ["of-years"]}) for name in names]
    define([ResourceConfig("of-years", "of-years", "/")], definitions)
    all_series = Series.objects.filter(name__in=names)
    segments = Segment.objects.bulk_create(
        Segment(series=series, number=1, fingerprint=NAME, began_at=start, probe="noop")
        for series in all_series
    )
    return Metric.objects.bulk_create(
        Metric(segment=segment, name="total.seconds", unit="seconds") for segment in segments
    )


def _load(metrics: list[Metric], start: datetime) -> None:
    """Load month by month, then vacuum: the benchmark's server has no autovacuum."""
    keys = [metric.pk for metric in metrics]
    existing = {part.name for part in engine().partitions("monitor_sample")}
    time = start
    while time < END:
        span = range_of(time)
        part = f"monitor_sample_{span.label}"
        with connection.cursor() as cursor:
            if part not in existing:
                cursor.execute(_CREATE.format(part=part))
            cursor.execute(_FILL.format(part=part), [time, min(span.end, END), keys])
            if part not in existing:
                cursor.execute(_ATTACH.format(part=part), [span.start, span.end])
        time = span.end
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) monitor_sample, monitor_metric, monitor_segment")


def _roll(start: datetime) -> None:
    for _ in rebuild(start, END):
        pass
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) monitor_hourrollup, monitor_dayrollup, monitor_dirtyhour")


def _bytes(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_BYTES, {"table": table})
        return int(cursor.fetchone()[0])
