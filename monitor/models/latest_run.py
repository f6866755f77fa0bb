"""The latest runs of each series in one row, so that overviews need not read histories."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.series import Series

TREND_RUNS = 20
HOURS = 24


class LatestRun(models.Model):
    """The latest ended runs and totals of a series. Only ``monitor.overview.latest_sql`` writes it.

    *run* to *ended_at* describe the newest run that was not skipped; without one they are null or empty.
    *outcomes* has the first letter of the state of each of the newest ``TREND_RUNS`` runs, oldest first,
    skipped ones included. *slots* and *failed_resources* belong to the same runs; the latter is empty if no
    run names a failed resource.

    *means* has the mean ``total.seconds`` of the passed runs in each of the ``HOURS`` hours before
    *hours_end*, oldest first, four bytes each (IEEE 754, big-endian), NaN for an hour without a passed run;
    the last hour has one. They are values of *metric*, which belongs to the segment of the newest passed run.
    These fields are null while no run has passed.

    Changes in hours before *since* do not affect the row; null means that any change may.

    A series without a row has no ended run. If the series has a ``DirtyHour`` from *since* on that is not
    gathered, the row may be outdated and readers compute it again. There are no foreign key constraints, so
    that deleting a series never waits for a writer of its row; a row of a deleted series is never read.
    """

    series = models.OneToOneField(Series, models.CASCADE, primary_key=True, db_constraint=False)
    run = models.UUIDField(null=True)
    slot = models.DateTimeField(null=True)
    state = models.CharField(max_length=10, blank=True)
    stage = models.CharField(max_length=100, blank=True)
    failed_resource = models.CharField(max_length=100, blank=True)
    ended_at = models.DateTimeField(null=True)
    outcomes = models.CharField(max_length=TREND_RUNS, blank=True)
    slots = ArrayField(models.DateTimeField(), default=list)
    failed_resources = ArrayField(models.CharField(max_length=100, blank=True), default=list)
    metric = models.BigIntegerField(null=True)
    hours_end = models.DateTimeField(null=True)
    means = models.BinaryField(null=True)
    since = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "latest runs"

    def __str__(self) -> str:
        return f"{self.series_id}: {self.state or 'no run'}"
