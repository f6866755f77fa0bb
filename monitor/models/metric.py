"""Metrics and their samples: the time series of the depot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from monitor.models.segment import Segment
from monitor.models.series import Series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class MetricQuerySet(models.QuerySet["Metric"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> MetricQuerySet:
        return self.filter(segment__series__in=Series.objects.visible_to(user))


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
