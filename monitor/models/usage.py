"""What runs used at sites: what budgets are held against."""

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
        """That of runs which began on the same day as *now*, from midnight to midnight UTC."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return self.filter(began_at__gte=midnight, began_at__lt=midnight + timedelta(days=1))


class Usage(models.Model):
    """What one run used at one site, all resources there together; null where its report does not say."""

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, db_constraint=False, related_name="usage", db_index=False
    )
    # Found in the statement that writes it: to look again would be most of the work, and lock the site's row.
    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, db_constraint=False, related_name="usage", db_index=False
    )
    began_at = models.DateTimeField(help_text="as the run says: it counts for that day")
    bytes = models.PositiveBigIntegerField(null=True, help_text="sent and received, by copies that arrived")
    cpu_seconds = models.FloatField(null=True, help_text="of jobs: their processors times their run time")

    objects = UsageQuerySet.as_manager()

    class Meta:
        ordering = ["-began_at"]
        verbose_name_plural = "usage"
        constraints = [models.UniqueConstraint(fields=["run", "site"], name="usage_run_site_once")]
        indexes = [  # with all that a day's sum needs, so that the rows themselves are not looked at
            models.Index(
                fields=["site", "began_at"], include=["bytes", "cpu_seconds"], name="usage_site_day"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run} at {self.site}"
