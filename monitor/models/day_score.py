"""Scores of forecasts, summed by day, so that the scoreboard need not read forecasts."""

from __future__ import annotations

from django.db import models

from monitor.models.series import Suite
from monitor.models.site import Site


class DayScore(models.Model):
    """Sums over *n* forecasts of a *metric* in a *unit* by a *method* with actual values of one UTC *day*.

    A row with a *site* covers the series that use a resource there, so a series counts at each of its sites.
    A row without covers every series of the suite once. Errors are absolute: *absolute_error* is that of the
    median, *last_value_error* that of the baseline. *relative_error* covers the *relative_n* actual values
    that were not zero. *within_80* and *within_90* count the actual values, of *interval_n*, inside the
    intervals of these levels. Rows are kept as long as the suite keeps rollups of days.
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
    relative_n = models.PositiveIntegerField()
    relative_error = models.FloatField()
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
