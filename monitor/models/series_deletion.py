"""Series with many runs that are being deleted in the background, and how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.series import Series
from monitor.models.suite import Suite

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class SeriesDeletionQuerySet(models.QuerySet["SeriesDeletion"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SeriesDeletionQuerySet:
        """Return the deletions of series of the suites that *user* may see."""
        return self.filter(suite__in=Suite.objects.visible_to(user))

    def under_way(self) -> SeriesDeletionQuerySet:
        return self.filter(ended_at=None)


class SeriesDeletion(models.Model):
    """The deletion of the series *name*, which is disabled meanwhile and keeps its name until the end.

    Attributes:
        series: null when it is gone.
        runs, deleted_runs: how many it had when the deletion was requested, and how many are deleted.
        hindrance: why the last step was not possible; it is tried again.
    """

    name = models.SlugField(max_length=100)
    suite = models.ForeignKey(Suite, models.CASCADE, related_name="+")
    series = models.OneToOneField(Series, models.SET_NULL, null=True, related_name="deletion")
    requested_at = models.DateTimeField()
    requested_by = models.CharField(max_length=150)
    runs = models.PositiveIntegerField()
    deleted_runs = models.PositiveIntegerField(default=0)
    hindrance = models.TextField(blank=True)
    ended_at = models.DateTimeField(null=True)

    objects = SeriesDeletionQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(ended_at=None), name="series_deletion_under_way_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.percent} %"

    @property
    def percent(self) -> int:
        """How many of 100 runs are deleted; 100 only at the end. More runs may have ended meanwhile."""
        if self.ended_at is not None:
            return 100
        return min(100 * self.deleted_runs // max(self.runs, 1), 99)
