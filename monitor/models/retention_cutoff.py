"""How far back the depot has what it once had: of each series, and of each kind of data."""

from __future__ import annotations

from django.db import models

from monitor.models.series import Series


class DataKind(models.TextChoices):
    """What is kept for a time of its own; a suite says how many days of each: ``keep_<kind>_days``."""

    REPORTS = "reports", "raw reports"
    SAMPLES = "samples", "samples"
    HOURLY = "hourly", "rollups of hours"
    DAILY = "daily", "rollups of days"


class RetentionCutoff(models.Model):
    """What is older than its series keeps. Both are midnights (UTC) and only ever move on.

    What is before *kept_from* is not taken any more, so that nothing comes there while it is taken away. What
    was before *gone_before* has been taken away: of samples the rollups there are final, since nothing is
    left to make them from; they are never made again.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="horizons")
    kind = models.CharField(max_length=7, choices=DataKind)
    kept_from = models.DateTimeField()
    gone_before = models.DateTimeField(null=True)

    class Meta:
        ordering = ["series_id", "kind"]
        constraints = [models.UniqueConstraint(fields=["series", "kind"], name="retention_cutoff_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.series_id} from {self.kept_from:%Y-%m-%d}"
