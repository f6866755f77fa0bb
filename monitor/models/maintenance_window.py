"""Maintenance windows: announced times during which no scheduled run starts at some sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.natural_order import sort_name_field
from monitor.models.site import Site, may_manage_everywhere
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

CHANGE_WINDOWS = "monitor.change_maintenancewindow"


class MaintenanceWindowQuerySet(models.QuerySet["MaintenanceWindow"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> MaintenanceWindowQuerySet:
        """Return the windows at every site, and the windows at sites that *user* may see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        at_sites = MaintenanceWindow.sites.through.objects.filter(maintenancewindow=models.OuterRef("pk"))
        visible = Site.objects.visible_to(user).order_by().values("pk")
        return self.filter(~models.Exists(at_sites) | models.Q(has_row(at_sites.filter(site__in=visible))))

    def manageable_by(self, user: AbstractBaseUser | AnonymousUser) -> MaintenanceWindowQuerySet:
        """Return the configured windows that *user* may change; of a site admin, those only at its sites."""
        windows = self.configured()
        if may_manage_everywhere(user, CHANGE_WINDOWS):
            return windows
        sites = Site.objects.manageable_by(user, CHANGE_WINDOWS).order_by().values("pk")
        elsewhere = Site.objects.exclude(pk__in=sites).order_by().values("pk")
        at_sites = MaintenanceWindow.sites.through.objects.all()
        own = at_sites.filter(site__in=sites).values("maintenancewindow")
        others = at_sites.filter(site__in=elsewhere).values("maintenancewindow")
        return windows.filter(pk__in=own).exclude(pk__in=others)

    def not_over(self, now: datetime) -> MaintenanceWindowQuerySet:
        """Return the windows that may be open at *now* or later; every recurring window may be."""
        return self.exclude(schedule="", ends_at__lte=now)

    def at_site(self, site: Site) -> MaintenanceWindowQuerySet:
        """Return the windows at *site*, and at every site."""
        at_sites = MaintenanceWindow.sites.through.objects.filter(maintenancewindow=models.OuterRef("pk"))
        return self.filter(~models.Exists(at_sites) | models.Exists(at_sites.filter(site=site)))

    def configured(self) -> MaintenanceWindowQuerySet:
        """Return the windows of grid files and users, without those of feeds and declarations."""
        return self.filter(source="")

    def may_be_open(self, now: datetime) -> MaintenanceWindowQuerySet:
        """Return the windows that may be open at *now*, without evaluating schedules."""
        return self.not_over(now).filter(models.Q(starts_at=None) | models.Q(starts_at__lte=now))


class MaintenanceWindow(models.Model):
    """Planned maintenance at *sites* (empty: at every site).

    A window occurs once, from *starts_at* to *ends_at*, or for *duration_seconds* at every slot of *schedule*
    (``monitor.runs.maintenance.times``).
    """

    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    title = models.CharField(max_length=200, blank=True, help_text="displayed title; empty: the name")
    sites = models.ManyToManyField(
        Site, blank=True, related_name="maintenance_windows", help_text="none: every site"
    )
    starts_at = models.DateTimeField(
        null=True, blank=True, help_text="start of a single window; with a schedule, no window starts earlier"
    )
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text="end of a single window; with a schedule, no window starts later"
    )
    schedule = models.CharField(
        max_length=200,
        blank=True,
        help_text="five-field cron expression for the starts of recurring windows; empty: a single window",
    )
    timezone = models.CharField(
        max_length=50, default="UTC", help_text="time zone of the schedule, an IANA name"
    )
    duration_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="duration of each recurring window"
    )

    source = models.SlugField(
        blank=True,
        editable=False,
        db_index=False,
        help_text="the feed that announced the window; empty: a grid file or a user",
    )
    uid = models.CharField(max_length=300, blank=True, editable=False, help_text="identifies it in the feed")
    url = models.CharField(max_length=500, blank=True, editable=False, help_text="the announcement")

    objects = MaintenanceWindowQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "uid"],
                condition=~models.Q(source=""),
                name="maintenance_window_once_in_its_source",
            ),
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
