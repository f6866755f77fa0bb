"""The latest runs of each series in one row, so that overviews need not read histories."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Length

from monitor.models.series import Series

TREND_RUNS = 20
HOURS = 24


class LatestRun(models.Model):
    """The latest ended runs and totals of a series. Only ``monitor.web.status.latest_sql`` writes it.

    Attributes:
        run, slot, state, stage, failed_resource, ended_at: the newest run that was not skipped; null or empty
            if there is no such run.
        outcomes: the first letter of the state of each of the newest ``TREND_RUNS`` ended runs, oldest first;
            skipped runs are included.
        slots: the slots of these runs.
        failed_resources: the failed resources of these runs; empty if no run names a failed resource.
        means: the mean ``total.seconds`` of passed runs in each of the ``HOURS`` hours before *hours_end*,
            oldest first; NaN for an hour without a passed run. Each mean has four bytes (IEEE 754,
            big-endian).
        hours_end: the end of the last hour with a passed run.
        metric: the metric of the values; it belongs to the segment of the newest passed run.
        since: changes in hours before this time do not affect the row; if null, any change may affect the
            row.

    *means*, *hours_end* and *metric* are null while no run has passed.

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
        indexes = [
            # The state of a series seldom changes, so its row seldom needs a new entry.
            models.Index(
                fields=["failed_resource"],
                condition=models.Q(state__in=["failed", "timed_out"]),
                name="latestrun_failing",
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(slots__len=Length("outcomes"))
                & (models.Q(failed_resources__len=0) | models.Q(failed_resources__len=Length("outcomes"))),
                name="latestrun_equal_lengths",
            )
        ]

    def __str__(self) -> str:
        return f"{self.series_id}: {self.state or 'no run'}"
