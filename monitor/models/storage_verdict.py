"""What the runs of a series say about the storage area that it measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.series import Series
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class StorageVerdictQuerySet(models.QuerySet["StorageVerdict"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> StorageVerdictQuerySet:
        """Return the verdicts of the series that *user* may see."""
        if sees_all(user):
            return self
        return self.filter(series__in=Series.objects.visible_to(user).order_by().values("pk"))


class StorageVerdict(models.Model):
    """The verdict of one series, computed by ``monitor.analysis.storage.compute`` after new runs.

    Attributes:
        newest: the slot of the newest run that it is about.
        content: ``uses``: rates by use, each with its history; ``sweep``: the state of the newest sweep;
            ``effects`` or ``streams``: the analysis of the newest sweep with enough whole passes, which began
            at ``of``; ``refusal``: why there is none.
    """

    series = models.OneToOneField(Series, models.CASCADE, primary_key=True, related_name="storage_verdict")
    computed_at = models.DateTimeField()
    newest = models.DateTimeField()
    content = models.JSONField()

    objects = StorageVerdictQuerySet.as_manager()

    class Meta:
        ordering = ["series_id"]

    def __str__(self) -> str:
        return f"storage verdict of {self.series}"
