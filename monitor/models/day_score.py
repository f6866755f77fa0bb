"""Scores of forecasts, summed by day, so that the scoreboard need not read forecasts."""

from __future__ import annotations

from django.db import models

from monitor.models.site import Site
from monitor.models.suite import Suite


class DayScore(models.Model):
    """Sums of the scores of forecasts whose actual values belong to one UTC day.

    A row with a *site* covers the series that use a resource there, so a series counts at each of its sites.
    A row without a site covers every series of the suite once. A row is kept as long as the suite keeps daily
    rollups.

    Attributes:
        n: the number of forecasts.
        absolute_error: the absolute errors of the median.
        last_value_n: the number of forecasts with a baseline.
        last_value_error: the absolute errors of these baselines.
        compared_error: the absolute errors of the median in the same forecasts.
        actual: the absolute actual values; errors are divided by their sum.
        interval_n: the number of forecasts with an interval.
        within_80, within_90: the numbers of actual values inside the 80 % and the 90 % intervals.
    """

    day = models.DateField()
    suite = models.ForeignKey(Suite, models.CASCADE, related_name="+", db_index=False)
    site = models.ForeignKey(Site, models.CASCADE, null=True, related_name="+")
    metric = models.CharField(max_length=200)
    unit = models.CharField(max_length=50)
    method = models.CharField(max_length=50)
    n = models.PositiveIntegerField()
    absolute_error = models.FloatField()
    last_value_n = models.PositiveIntegerField()
    last_value_error = models.FloatField()
    compared_error = models.FloatField(help_text="absolute_error where last_value_error is known")
    actual = models.FloatField()
    interval_n = models.PositiveIntegerField()
    within_80 = models.PositiveIntegerField()
    within_90 = models.PositiveIntegerField()

    class Meta:
        ordering = ["-day", "id"]
        indexes = [models.Index(fields=["suite", "day"], name="dayscore_of_suite")]
        constraints = [
            models.UniqueConstraint(
                fields=["metric", "day", "suite", "site", "method", "unit"],
                name="dayscore_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} by {self.method} on {self.day}: {self.n}"
