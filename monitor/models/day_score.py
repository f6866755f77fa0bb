"""How forecasts fared, day by day: so that nobody goes through forecasts to see how good they are."""

from __future__ import annotations

from django.db import models

from monitor.models.series import Suite
from monitor.models.site import Site


class DayScore(models.Model):
    """Sums over the *n* forecasts of a *metric*, in one *unit*, by one *method* whose truths are of one *day*
    (UTC).

    With a *site* they are of the series that have a resource there: who adds sites up counts a series at
    each. Without, of every series of the suite, each once. Errors are absolute: of the median, and of what
    would have been said by the last value. *relative_error* is by the truth, of the *relative_n* that were
    not zero. *within_80* and *within_90* of *interval_n* truths lay in the intervals that promise so much.
    Kept as long as the suite keeps rollups of days.
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
    compared_error = models.FloatField(help_text="absolute_error of those that have a last_value_error")
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
