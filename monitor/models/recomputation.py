"""Recomputations of availability: who requested them and why, and what they changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.availability_profile import ProfileVersion
from monitor.models.hold import MAX_REASON_CHARACTERS
from monitor.models.site import Site
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class RecomputationQuerySet(models.QuerySet["Recomputation"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RecomputationQuerySet:
        """Return the recomputations of a site at which *user* may see a series."""
        if user.is_authenticated and user.is_active and sees_all(user):
            return self
        changes = RecomputedPeriod.objects.visible_to(user).filter(recomputation=models.OuterRef("pk"))
        return self.filter(has_row(changes))


class Recomputation(models.Model):
    """The availability from *first* to *last* was computed again on request.

    *version* is the profile by which all days were computed; null: each day by the version that it had.
    """

    requester = models.CharField(max_length=200)
    reason = models.CharField(max_length=MAX_REASON_CHARACTERS)
    at = models.DateTimeField()
    first = models.DateField()
    last = models.DateField()
    version = models.ForeignKey(ProfileVersion, on_delete=models.PROTECT, null=True, related_name="+")

    objects = RecomputationQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.first} to {self.last}, by {self.requester}: {self.reason}"


class RecomputedPeriodQuerySet(models.QuerySet["RecomputedPeriod"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RecomputedPeriodQuerySet:
        """Return the periods of sites at which *user* may see a series."""
        if user.is_authenticated and user.is_active and sees_all(user):
            return self
        return self.filter(site__in=Site.objects.with_series_visible_to(user).order_by())


class RecomputedPeriod(models.Model):
    """What *recomputation* changed: a month of *site*, or a day of which a figure or the version changed.

    Attributes:
        site: null if it was deleted since; *site_name* stays.
        day: the day; of a month, its first day.
        before, after: the seconds up, unknown, scheduled and down; *before* is null if there were none.
        before_version, after_version: of a day, by name; empty for months.
    """

    recomputation = models.ForeignKey(Recomputation, on_delete=models.CASCADE, related_name="periods")
    site = models.ForeignKey(Site, on_delete=models.SET_NULL, null=True, related_name="+")
    site_name = models.SlugField()
    day = models.DateField()
    is_month = models.BooleanField()
    before = ArrayField(models.IntegerField(), null=True)
    after = ArrayField(models.IntegerField())
    before_version = models.CharField(max_length=70, blank=True)
    after_version = models.CharField(max_length=70, blank=True)

    objects = RecomputedPeriodQuerySet.as_manager()

    class Meta:
        ordering = ["site_name", "-is_month", "day"]
        constraints = [
            models.UniqueConstraint(
                fields=["recomputation", "site_name", "day", "is_month"], name="recomputed_period_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.site_name}, {self.day:%Y-%m}" if self.is_month else f"{self.site_name}, {self.day}"
