"""Metrics and their samples: the time series of the depot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from monitor.db import binary
from monitor.models.segment import Segment
from monitor.models.series import Series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


# Asked by every question about values: written by the ORM, and planned anew, it takes longer than the answer.
_NAMED = """
SELECT metric.id, metric.unit, segment.id, segment.number, series.id
FROM monitor_series AS series
JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
WHERE series.name = %(series)s AND metric.name = %(name)s
"""


class MetricQuerySet(models.QuerySet["Metric"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> MetricQuerySet:
        return self.filter(segment__series__in=Series.objects.visible_to(user))

    def named(self, series: str, name: str) -> list[Metric]:
        """Those of *name* of a series, of each of its segments: whoever may see it. Of the segment only its
        number is there, of the series only its name."""
        with binary.cursor() as cursor:
            rows = cursor.execute(_NAMED, {"series": series, "name": name}).fetchall()
        return [_named(series, name, row) for row in rows]


def _named(series: str, name: str, row: tuple[Any, ...]) -> Metric:
    pk, unit, segment_pk, number, series_pk = row
    metric = Metric.from_db(None, ["id", "segment_id", "name", "unit"], [pk, segment_pk, name, unit])
    metric.segment = Segment.from_db(None, ["id", "series_id", "number"], [segment_pk, series_pk, number])
    metric.segment.series = Series.from_db(None, ["id", "name"], [series_pk, series])
    return metric


class Metric(models.Model):
    """One number that every run of a segment of a series gives, with its unit."""

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
    """One value. The key contains the time, as partitions and hypertables ask.

    *time* is the run's slot. The value became known at *known_at*, when its report had ended: no forecast
    made before that may use it. *passed* says whether the whole run passed; values of others are kept, but
    not forecast from.
    """

    pk = models.CompositePrimaryKey("metric_id", "time")
    # Half of what storing a sample costs would be to look whether its metric, just found, is there.
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
