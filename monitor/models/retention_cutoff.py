"""Retention cutoffs: the times up to which the data of each series are deleted."""

from __future__ import annotations

from django.db import models

from monitor.models.series import Series


class DataKind(models.TextChoices):
    """The kinds of data with a retention of their own: ``Suite.keep_<kind>_days``."""

    REPORTS = "reports", "raw reports"
    SAMPLES = "samples", "samples"
    HOURLY = "hourly", "hourly rollups"
    DAILY = "daily", "daily rollups"


class RetentionCutoff(models.Model):
    """The cutoffs of one kind of data of a series. Both times are UTC midnights and only ever increase.

    New data before *kept_from* are not stored, so that no data arrive while old data are deleted. Data before
    *gone_before* have been deleted. Rollups of deleted samples are final: they cannot be computed again.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="retention_cutoffs")
    kind = models.CharField(max_length=7, choices=DataKind)
    kept_from = models.DateTimeField()
    gone_before = models.DateTimeField(null=True)

    class Meta:
        ordering = ["series_id", "kind"]
        constraints = [models.UniqueConstraint(fields=["series", "kind"], name="retention_cutoff_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.series_id} from {self.kept_from:%Y-%m-%d}"
