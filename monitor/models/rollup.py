"""What samples come to, hour by hour and day by day, and what of that is not up to date."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.metric import Metric
from monitor.models.series import Series


class Rollup(models.Model):
    """One metric in one hour or day, which begins at *bucket* (UTC).

    *n* counts its samples, *passed* those of passed runs; all else is of these: null where there are none,
    *stdev* (of a sample: n - 1) also where there is one. *sketch* has the key of every value, in order
    (``monitor.depot.rollups.ddsketch``): put together, sketches give quantiles of any stretch of time.

    On TimescaleDB these are continuous aggregates: nobody but its engine writes them.
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
    """One hour. Either all hours of a day that have samples are here, or none: of days with few samples,
    which are read as quickly themselves (``monitor.depot.engines.rollup_tables.SPARSE``)."""


class DayRollup(Rollup):
    """One day, midnight to midnight UTC."""


class DirtyHour(models.Model):
    """An hour in which a series has something that the rollups do not have yet.

    Written in the transaction that changed it, as often as that happens. Those of one hour are soon put
    together to one that is *gathered*: what has to know of a change at once knows of it then. That one is
    taken away when the hour is rolled up. The series 0 means every series.
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
