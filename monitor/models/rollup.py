"""Rollups of samples by hour and day, and the hours whose rollups are outdated."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.metric import Metric
from monitor.models.series import Series


class Rollup(models.Model):
    """One metric in the hour or day that begins at *bucket* (UTC).

    *n* counts the samples, and *passed* counts the samples of passed runs. The other columns are computed
    from samples of passed runs; they are null if no run has passed. *stdev* (divided by n - 1) is null for a
    single sample. *sketch* contains the sorted keys of the values (``monitor.depot.rollups.ddsketch``):
    merged sketches give quantiles of any time range.

    On TimescaleDB under the Timescale licence these tables are continuous aggregates, which TimescaleDB
    itself writes.
    """

    pk = models.CompositePrimaryKey("metric_id", "bucket")
    metric = models.ForeignKey(
        Metric, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    bucket = models.DateTimeField()
    n = models.IntegerField()
    passed = models.IntegerField()
    mean = models.FloatField(null=True)
    min = models.FloatField(null=True)
    max = models.FloatField(null=True)
    stdev = models.FloatField(null=True)
    sketch = ArrayField(models.SmallIntegerField(), null=True)

    class Meta:
        abstract = True
        ordering = ["bucket"]

    def __str__(self) -> str:
        return f"{self.metric_id} from {self.bucket}: {self.n}"


class HourRollup(Rollup):
    """The rollup of one hour.

    A day with few samples has no hourly rollups, because its samples are read as quickly
    (``monitor.depot.engines.rollup_tables.SPARSE``). Any other day has a row for each of its hours with
    samples.
    """


class DayRollup(Rollup):
    """The rollup of one day, from midnight to midnight UTC."""


class DirtyHour(models.Model):
    """An hour of a series whose rollups are outdated.

    Every transaction that changes samples of the hour inserts a row. Soon afterwards, the rows of an hour are
    merged into one *gathered* row, and subscribers are notified of the change. The gathered row is deleted
    when the hour is rolled up. Series 0 stands for every series.
    """

    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="+"
    )
    hour = models.DateTimeField()
    gathered = models.BooleanField(db_default=False)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["series", "hour"], name="dirtyhour_series_hour"),
            models.Index(fields=["series", "hour"], name="dirtyhour_new", condition=models.Q(gathered=False)),
        ]

    def __str__(self) -> str:
        return f"{self.series_id} from {self.hour}"
