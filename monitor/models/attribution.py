"""Attributions: the parts of the grid that were found to be at fault, with the runs that they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.series import Series
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class AttributionQuerySet(models.QuerySet["Attribution"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> AttributionQuerySet:
        """Return the attributions that rest on a run that *user* may see."""
        if user.is_authenticated and user.is_active and sees_all(user):
            return self
        visible = Series.objects.visible_to(user).order_by()
        return self.filter(has_row(_runs_of_attribution().filter(series__in=visible)))

    def open(self) -> AttributionQuerySet:
        return self.filter(ended_at=None)


class Attribution(models.Model):
    """A part of the grid was at fault, as many runs show (``monitor.analysis.attribution.culprits``).

    Attributes:
        kind, name: the part; the name of an edge is ``source>destination``, all other names are sites or
            reporters.
        probability: of this verdict, when it was last confirmed.
        failed, total: of the results that used the part then.
        since, latest_at: the slots of the first and the latest failed run that it rests on.
        ended_at: when the results no longer supported it; null as long as they do.
    """

    kind = models.CharField(max_length=11)
    name = models.CharField(max_length=201)
    probability = models.FloatField()
    failed = models.PositiveIntegerField()
    total = models.PositiveIntegerField()
    since = models.DateTimeField()
    latest_at = models.DateTimeField()
    decided_at = models.DateTimeField(help_text="when it was first found")
    ended_at = models.DateTimeField(null=True)

    objects = AttributionQuerySet.as_manager()

    class Meta:
        ordering = ["-decided_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "name"], condition=models.Q(ended_at=None), name="attribution_open_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name.replace('>', ' → ')}"

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites at fault: none for a reporter, and none for an edge, of which neither end is at fault."""
        return () if self.kind in ("edge", "reporter") else (self.name,)


class AttributedRun(models.Model):
    """A failed run that *attribution* explains."""

    attribution = models.ForeignKey(Attribution, on_delete=models.CASCADE, related_name="runs")
    run = models.UUIDField()
    slot = models.DateTimeField()
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "attribution"], name="attributed_run_once"),
        ]

    def __str__(self) -> str:
        return f"{self.series} at {self.slot:%Y-%m-%d %H:%M:%S}: {self.attribution}"


def _runs_of_attribution() -> models.QuerySet[AttributedRun]:
    return AttributedRun.objects.filter(attribution=models.OuterRef("pk"))
