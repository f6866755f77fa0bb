"""Corrections: values that changed when raw reports were parsed again by a newer parser."""

from __future__ import annotations

from django.db import models

from monitor.models.metric import Metric


class Correction(models.Model):
    """A sample that changed when its raw report was parsed again.

    The old value is null if the sample is new; the new value is null if the sample was removed.
    """

    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="corrections")
    time = models.DateTimeField(help_text="time of the sample: the slot of its run")
    old_value = models.FloatField(null=True)
    old_passed = models.BooleanField(null=True)
    new_value = models.FloatField(null=True)
    new_passed = models.BooleanField(null=True)
    parser_version = models.PositiveSmallIntegerField(
        help_text="version of the parser that read the new value"
    )
    corrected_at = models.DateTimeField()

    class Meta:
        ordering = ["corrected_at", "id"]
        indexes = [models.Index(fields=["metric", "time"], name="correction_metric_time")]

    def __str__(self) -> str:
        return f"{self.metric_id} at {self.time}: {self.old_value} -> {self.new_value}"
