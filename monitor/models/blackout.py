"""Times in which no slot is begun, announced beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.site import Site

if TYPE_CHECKING:
    from datetime import datetime


class BlackoutQuerySet(models.QuerySet["Blackout"]):
    def at(self, now: datetime) -> BlackoutQuerySet:
        return self.filter(starts_at__lte=now, ends_at__gt=now)


class Blackout(models.Model):
    """Planned work at some sites; at all of them where none is named."""

    title = models.CharField(max_length=200)
    sites = models.ManyToManyField(Site, blank=True, related_name="blackouts")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    objects = BlackoutQuerySet.as_manager()

    class Meta:
        ordering = ["-starts_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ends_at__gt=models.F("starts_at")), name="blackout_ends_after_it_starts"
            ),
        ]

    def __str__(self) -> str:
        return self.title
