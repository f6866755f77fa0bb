"""The usage of sites by runs, which daily budgets limit."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from django.db import models

from monitor.models.run import Run
from monitor.models.site import Site

if TYPE_CHECKING:
    from datetime import datetime


class UsageQuerySet(models.QuerySet["Usage"]):
    def on_day_of(self, now: datetime) -> UsageQuerySet:
        """Return the usage of runs that started on the UTC day of *now*."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return self.filter(began_at__gte=midnight, began_at__lt=midnight + timedelta(days=1))


class Usage(models.Model):
    """The usage of all resources of one site by one run; a column is null if no report gives its value."""

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, db_constraint=False, related_name="usage", db_index=False
    )
    # No constraint: the statement that writes a row has just read the site. A constraint would take most of
    # the statement's time, and lock the site.
    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, db_constraint=False, related_name="usage", db_index=False
    )
    began_at = models.DateTimeField(help_text="start of the run, which decides the day it counts for")
    bytes = models.PositiveBigIntegerField(null=True, help_text="sent and received by successful copies")
    cpu_seconds = models.FloatField(null=True, help_text="processors times run time of the batch jobs")

    objects = UsageQuerySet.as_manager()

    class Meta:
        ordering = ["-began_at"]
        verbose_name_plural = "usage"
        constraints = [models.UniqueConstraint(fields=["run", "site"], name="usage_run_site_once")]
        indexes = [  # covers the sums of a day: an index-only scan
            models.Index(
                fields=["site", "began_at"], include=["bytes", "cpu_seconds"], name="usage_site_day"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} at site {self.site_id}"  # neither needs to exist any more
