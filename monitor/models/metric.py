"""Metrics and their samples: the time series of the depot."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from monitor.core.db import binary
from monitor.models.segment import Segment
from monitor.models.series import Series

# Every request for values runs this; the ORM would take longer to compile it than the database to answer.
_NAMED = """
SELECT metric.id, metric.unit, segment.id, segment.number, series.id
FROM monitor_series AS series
JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
WHERE series.name = %(series)s AND metric.name = %(name)s
"""


class MetricQuerySet(models.QuerySet["Metric"]):
    def named(self, series: str, name: str) -> list[Metric]:
        """Return the metrics called *name* of the segments of *series*, regardless of permissions.

        Of each segment only the key and the number are loaded, of its series only the key and the name.
        """
        with binary.cursor() as cursor:
            rows = cursor.execute(_NAMED, {"series": series, "name": name}).fetchall()
        return [_metric(series, name, _NamedRow(*row)) for row in rows]


class _NamedRow(NamedTuple):
    """A row of ``_NAMED``."""

    metric: int
    unit: str
    segment: int
    number: int
    series: int


def _metric(series: str, name: str, row: _NamedRow) -> Metric:
    segment_key = row.segment
    metric = Metric.from_db(
        None, ["id", "segment_id", "name", "unit"], [row.metric, segment_key, name, row.unit]
    )
    metric.segment = Segment.from_db(
        None, ["id", "series_id", "number"], [segment_key, row.series, row.number]
    )
    metric.segment.series = Series.from_db(None, ["id", "name"], [row.series, series])
    return metric


class Metric(models.Model):
    """A number that every run of a segment yields, with its unit."""

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="metrics")
    name = models.CharField(max_length=200)
    unit = models.CharField(max_length=50)

    objects = MetricQuerySet.as_manager()

    class Meta:
        ordering = ["segment_id", "name"]
        constraints = [models.UniqueConstraint(fields=["segment", "name"], name="metric_name_once_a_segment")]

    def __str__(self) -> str:
        return f"{self.segment}: {self.name}"

    @property
    def series(self) -> Series:
        return self.segment.series


class Sample(models.Model):
    """One value of a metric.

    Attributes:
        time: the slot of the run; it is part of the key, as partitions and hypertables require.
        known_at: the end of the run, when the value became known; no earlier forecast may use the value.
        passed: whether the run passed; values of other runs are kept, but forecasts do not use them.
    """

    pk = models.CompositePrimaryKey("metric_id", "time")
    # No constraint: ingest has just looked the metric up, and checking it again would double the insert's
    # cost.
    metric = models.ForeignKey(
        Metric, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="samples"
    )
    time = models.DateTimeField()
    known_at = models.DateTimeField()
    value = models.FloatField()
    passed = models.BooleanField()

    class Meta:
        ordering = ["time"]
        indexes = [BrinIndex(fields=["time"], name="sample_time_brin")]

    def __str__(self) -> str:
        return f"{self.metric_id} at {self.time}: {self.value}"
