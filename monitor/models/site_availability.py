"""The availability of sites by day and month, and the days whose figures are outdated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.db import models

from monitor.models.availability_profile import ProfileVersion
from monitor.models.series import Series
from monitor.models.site import Site
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class SiteAvailabilityQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Return the rows of the sites at which *user* may see a series."""
        if user.is_authenticated and user.is_active and sees_all(user):
            return self
        return self.filter(site__in=Site.objects.with_series_visible_to(user).order_by())

    def of_sites(self) -> Self:
        """Return the rows of whole sites, without those of their services."""
        return self.filter(service="")


class SiteStatusSeconds(models.Model):
    """The seconds of *site* in each status; with *service*, those of one service, without maintenance."""

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="+")
    service = models.CharField(max_length=100, blank=True)
    up_seconds = models.IntegerField(default=0)
    unknown_seconds = models.IntegerField(default=0)
    scheduled_seconds = models.IntegerField(default=0)
    down_seconds = models.IntegerField(default=0)

    objects = SiteAvailabilityQuerySet.as_manager()

    class Meta:
        abstract = True

    @property
    def availability(self) -> float | None:
        known = self.up_seconds + self.scheduled_seconds + self.down_seconds
        return self.up_seconds / known if known else None

    @property
    def reliability(self) -> float | None:
        counted = self.up_seconds + self.down_seconds
        return self.up_seconds / counted if counted else None


class SiteDay(SiteStatusSeconds):
    """A day (UTC), computed by *version* from the results known at *computed_at*.

    Attributes:
        until: the end of the time that was counted: before the end of the day, the day was not over.
        is_dirty: whether the day is to be computed again. Only rows of whole sites are marked.
        version, computed_at: null until the day is computed.
    """

    day = models.DateField()
    version = models.ForeignKey(ProfileVersion, on_delete=models.PROTECT, null=True, related_name="+")
    until = models.DateTimeField(null=True)
    computed_at = models.DateTimeField(null=True)
    is_dirty = models.BooleanField(default=True)

    class Meta:
        ordering = ["day", "site_id", "service"]
        constraints = [
            models.UniqueConstraint(fields=["site", "day", "service"], name="site_day_once"),
        ]
        indexes = [
            models.Index(fields=["day"], name="site_day_by_day"),
            models.Index(
                fields=["day"], condition=models.Q(is_dirty=True, service=""), name="site_day_dirty"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} on {self.day}"


class SiteMonth(SiteStatusSeconds):
    """The sum of the days of a month, which has its first day in *month*.

    Attributes:
        created_at: when a day of the month was first stored.
        published_at: since when only recomputations change the month; null before that.
        has_late_data: whether results or maintenance changed after it was published.
        Rows of services have neither.
    """

    month = models.DateField()
    created_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True)
    has_late_data = models.BooleanField(default=False)

    class Meta:
        ordering = ["month", "site_id", "service"]
        constraints = [
            models.UniqueConstraint(fields=["month", "site", "service"], name="site_month_once"),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} in {self.month:%Y-%m}"


class DirtyDay(models.Model):
    """Days whose availability is outdated, of the sites of *series*, of *site*, or (both null) of all sites.

    Triggers of the database insert these rows when results of past days, their causes, verdicts on them, or
    maintenance windows change. Today is computed every few minutes and needs none.
    """

    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, null=True, db_constraint=False, db_index=False, related_name="+"
    )
    first = models.DateField()
    last = models.DateField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"
