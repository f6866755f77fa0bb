"""What a series came to last: a row each, so that nobody goes through histories to look at all of them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.series import Series

TREND_RUNS = 20
HOURS = 24


class LatestRun(models.Model):
    """The newest runs of a series that ended, and what its total was of late. Written by
    ``monitor.overview.latest_sql`` alone, which also says how a row is made.

    *run* up to *ended_at* are of the newest run that tells something: any but a skipped one; without one they
    are null and empty. *outcomes* has the first letter of the state of each of the newest ``TREND_RUNS``
    runs, oldest first, skipped ones too; *slots* and *failed_resources* are of the same runs, the latter
    empty where none of them names one.

    *means* has the mean ``total.seconds`` of the passed runs of each of the ``HOURS`` hours before
    *hours_end*, oldest first, four bytes each (IEEE 754, big-endian), NaN for none: those of *metric*, which
    is of the segment that passed last, and the last of these hours has some. All are null while nothing has
    passed.

    What changes in hours before *since* changes nothing of this; null: everything may.

    A series without a row has no run that ended. A row of a series with a ``DirtyHour`` from *since* on that
    is not gathered may be behind: who reads makes that anew. There is no constraint, so that who deletes a
    series never meets one who writes its row; a row that is left over is of no series, and never seen.
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
        verbose_name_plural = "latest"

    def __str__(self) -> str:
        return f"{self.series_id}: {self.state or 'nothing yet'}"
