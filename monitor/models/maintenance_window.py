"""Times in which no slot is begun, announced beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.series import Series
from monitor.models.site import Site
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class MaintenanceWindowQuerySet(models.QuerySet["MaintenanceWindow"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> MaintenanceWindowQuerySet:
        """Those at all sites, and those at a site of a series that *user* may see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        visible = Series.objects.visible_to(user).order_by()
        sites = Site.objects.filter(resources__bindings__series__in=visible)
        return self.filter(models.Q(sites=None) | models.Q(sites__in=sites)).distinct()

    def not_over(self, now: datetime) -> MaintenanceWindowQuerySet:
        """Those of which a window may be open at *now* or come. What recurs is among them, whether or not."""
        return self.exclude(schedule="", ends_at__lte=now)

    def may_be_open(self, now: datetime) -> MaintenanceWindowQuerySet:
        """Of ``not_over``, those of which a window may be open at *now*: when, their schedules say."""
        return self.not_over(now).filter(models.Q(starts_at=None) | models.Q(starts_at__lte=now))


class MaintenanceWindow(models.Model):
    """Planned work at some sites; at all of them where none is named.

    It is one window, from *starts_at* to *ends_at*, or one of *duration_seconds* at every slot of *schedule*
    (``services.read_windows``).
    """

    name = models.SlugField(unique=True)
    title = models.CharField(max_length=200, blank=True, help_text="what people call it; empty: its name")
    sites = models.ManyToManyField(
        Site, blank=True, related_name="maintenance_windows", help_text="none: all of them"
    )
    starts_at = models.DateTimeField(
        null=True, blank=True, help_text="of the one window; with a schedule, no window begins before it"
    )
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text="of the one window; with a schedule, no window begins after it"
    )
    schedule = models.CharField(
        max_length=200, blank=True, help_text="five-field cron, when each window begins; empty: there is one"
    )
    timezone = models.CharField(
        max_length=50, default="UTC", help_text="whose clock the schedule means, by IANA name"
    )
    duration_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="with a schedule, how long each window is"
    )

    objects = MaintenanceWindowQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ends_at__gt=models.F("starts_at")),
                name="maintenance_window_ends_after_it_starts",
                violation_error_message="Expected an end after the start.",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    schedule="", duration_seconds=None, starts_at__isnull=False, ends_at__isnull=False
                )
                | (~models.Q(schedule="") & models.Q(duration_seconds__isnull=False, duration_seconds__gt=0)),
                name="maintenance_window_once_or_recurring",
                violation_error_message="Expected a start and an end, or a schedule and a duration.",
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.name
