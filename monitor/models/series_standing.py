"""Latest states of series counted by suite, probe, reporter and site: overviews read the counts."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Length

FAILING = ("f", "t", "b", "m", "l")  # the letters of ``ledger.attribution``'s failures


class SeriesStanding(models.Model):
    """What is counted of a series. Only ``monitor.web.status.standings`` writes it, along with the counts.

    Attributes:
        series: the primary key of the series, which may have been deleted since.
        suite, reporter, sites: primary keys, when it was counted; *sites* are those of its resources.
        state: as ``overview.series_states.SeriesStates.state``.
        culprit: the primary key of the site where the last run failed; 0 if it is unknown.
        ended_at: when the last run ended that was not skipped.
        stale_at: when this run becomes older than the schedule allows; null: never.
        is_stale: whether it was counted as stale.
        slots, outcomes: the ended runs that are counted, those of the last hours; outcomes are letters.
        is_uncounted: whether requests read the state of the series, which may have had more runs in an hour
            than ``LatestRun`` has, or is imported history.
    """

    series = models.BigIntegerField(primary_key=True, db_column="series_id")
    suite = models.BigIntegerField(db_column="suite_id")
    reporter = models.BigIntegerField(db_column="reporter_id")
    probe = models.CharField(max_length=100)
    sites = ArrayField(models.BigIntegerField())
    state = models.CharField(max_length=1)
    culprit = models.BigIntegerField()
    ended_at = models.DateTimeField(null=True)
    stale_at = models.DateTimeField(null=True)
    is_stale = models.BooleanField()
    slots = ArrayField(models.DateTimeField())
    outcomes = models.CharField(max_length=20, blank=True)
    is_uncounted = models.BooleanField()

    class Meta:
        indexes = [
            models.Index(fields=["stale_at"], condition=models.Q(is_stale=False), name="standing_due"),
            models.Index(fields=["stale_at"], condition=models.Q(is_stale=True), name="standing_stale"),
            models.Index(fields=["suite"], condition=models.Q(state__in=FAILING), name="standing_failing"),
            models.Index(fields=["series"], condition=models.Q(is_uncounted=True), name="standing_uncounted"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(slots__len=Length("outcomes")), name="standing_equal_lengths"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series}: {self.state}"


class StandingCount(models.Model):
    """The number *n* of series by what is counted of them.

    *site* is the primary key of one of their sites, as seen from which they have this *standing*
    (``overview.series_states.STANDINGS``); 0 counts each series once.
    """

    suite = models.BigIntegerField(db_column="suite_id")
    probe = models.CharField(max_length=100)
    reporter = models.BigIntegerField(db_column="reporter_id")
    site = models.BigIntegerField(db_column="site_id")
    standing = models.SmallIntegerField()
    state = models.CharField(max_length=1)
    n = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["suite", "site", "probe", "reporter", "standing", "state"], name="standingcount_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.n} series of suite {self.suite} at site {self.site}"


class OutcomeCount(models.Model):
    """The number *n* of ended runs of a suite with this *slot* and outcome, a letter; of the last hours."""

    slot = models.DateTimeField()
    suite = models.BigIntegerField(db_column="suite_id")
    outcome = models.CharField(max_length=1)
    n = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slot", "suite", "outcome"], name="outcomecount_once"),
        ]

    def __str__(self) -> str:
        return f"{self.n} runs of suite {self.suite} at {self.slot}"


class StandingChange(models.Model):
    """A series (primary key) to be counted again: its configuration has changed. Triggers insert it."""

    series = models.BigIntegerField(db_column="series_id")

    def __str__(self) -> str:
        return str(self.series)
