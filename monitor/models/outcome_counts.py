"""Outcomes of runs, counted by hour and day, and the hours whose counts are outdated.

``monitor.analysis.outcomes.worker`` writes all of them; nothing here is counted by a request.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.series import Series


class OutcomeBlock(models.Model):
    """The passed runs of some series on a day (UTC), and their outages.

    The series are those whose keys divided by ``SERIES`` are *shard*.
    ``monitor.analysis.outcomes.blocks`` packs the columns: *passed* has a number for each hour and
    series, *repairs* sums for each series. The counts of a day are so few bytes that a page reads those of
    100,000 series.
    """

    SERIES = 128

    pk = models.CompositePrimaryKey("day", "shard")
    day = models.DateTimeField(help_text="the midnight that begins it")
    shard = models.BigIntegerField()
    passed = models.BinaryField()
    repairs = models.BinaryField()

    class Meta:
        ordering = ["day", "shard"]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d}, {self.shard}"


class OutcomeDay(models.Model):
    """The sums of the blocks of a day: *passed* runs of each series, and of each suite by hour.

    *shards* are those of the blocks; *passed* has a number for each of their series. *suites* are the suites
    of the series when the day was summed up; *suite_passed* and *suite_repairs* have a row for each.
    """

    day = models.DateTimeField(primary_key=True)
    shards = models.BinaryField()
    passed = models.BinaryField()
    suites = models.BinaryField()
    suite_passed = models.BinaryField()
    suite_repairs = models.BinaryField()

    class Meta:
        ordering = ["day"]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d}"


class FailureHour(models.Model):
    """The failed *runs* of an hour, of all series, as an array of ``blocks.STORED_FAILURE``.

    *names* are those of the resources and stages at which they failed; a run has their positions.
    """

    hour = models.DateTimeField(primary_key=True)
    runs = models.BinaryField()
    names = ArrayField(models.TextField())

    class Meta:
        ordering = ["hour"]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}:00"


class OutcomeProgress(models.Model):
    """Which hours are counted: those from *since* until before *until*. There is at most one row.

    Requests count the runs of other hours. *since* moves back day by day, in the end to ``ALL``.
    """

    ALL = datetime(1, 1, 1, tzinfo=UTC)

    id = models.SmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="outcome_progress_once")]

    def __str__(self) -> str:
        return f"{self.since} to {self.until}"


class OutcomeChange(models.TextChoices):
    """What changed after it had been counted.

    ``RUNS``: a run of a series ended late. ``FAILURES``: the causes of failures changed, or which of them
    happened in maintenance. ``SUITES``: a series has moved to another suite, or is deleted.
    """

    RUNS = "runs"
    FAILURES = "failures"
    SUITES = "suites"


class DirtyOutcome(models.Model):
    """Hours from *first* to *last* that are counted again; without a *series*, of all series."""

    series = models.ForeignKey(
        Series, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True, related_name="+"
    )
    what = models.CharField(max_length=8, choices=OutcomeChange)
    first = models.DateTimeField()
    last = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["first", "id"], name="dirtyoutcome_oldest")]

    def __str__(self) -> str:
        return f"{self.what} of {self.series_id} from {self.first} to {self.last}"
