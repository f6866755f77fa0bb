"""Incidents: one for each cause of failures or alerts, with what users and the service did about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db import models

from monitor.models.failure_signature import FailureSignature
from monitor.models.reporter import Reporter
from monitor.models.role import ANY_IDENTITY, acting
from monitor.models.series import Series
from monitor.models.site import OPERATE, may_manage_everywhere
from monitor.models.suite import visible_suites
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MONITOR = "monitor"  # the kind of the incident that suspects the monitor itself
REPORTER, SERIES = "reporter", "series"  # the kinds of incidents of alerts


class IncidentQuerySet(models.QuerySet["Incident"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> IncidentQuerySet:
        """Return the incidents of series, or of alerts of series and reporters, that *user* may see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        suites = visible_suites(user)
        affected = IncidentSeries.objects.filter(incident=models.OuterRef("pk"), series__suite__in=suites)
        reporters = Reporter.objects.manageable_or_visible_to(user).order_by().values("pk")
        of_alert = models.Q(alerts__series__suite__in=suites) | models.Q(alerts__reporter__in=reporters)
        alerted = Incident.objects.filter(of_alert, pk=models.OuterRef("pk"))
        return self.filter(has_row(affected) | has_row(alerted))

    def manageable_by(self, user: AbstractBaseUser | AnonymousUser) -> IncidentQuerySet:
        """Return the visible incidents that *user* may change; of a site admin, those of its sites alone."""
        visible = self.visible_to(user)
        if may_manage_everywhere(user):
            return visible
        own_series = Series.objects.manageable_by(user).order_by().values("pk")
        own_reporters = Reporter.objects.manageable_by(user, OPERATE).order_by().values("pk")
        series = Series.objects.exclude(pk__in=own_series).order_by()
        reporters = Reporter.objects.exclude(pk__in=own_reporters).order_by()
        affects_others = IncidentSeries.objects.filter(series__in=series).order_by().values("incident")
        of_alert = models.Q(alerts__series__in=series) | models.Q(alerts__reporter__in=reporters)
        alerts_others = Incident.objects.filter(of_alert).order_by().values("pk")
        return visible.exclude(kind=MONITOR).exclude(pk__in=affects_others).exclude(pk__in=alerts_others)

    def of_runs(self) -> IncidentQuerySet:
        """Return the incidents of failed runs, without those that alerts opened, and suspicions."""
        return self.filter(condition="").exclude(kind=MONITOR)

    def of_alerts(self) -> IncidentQuerySet:
        """Return the incidents that alerts opened: of what is silent, and of reporters."""
        return self.exclude(condition="")

    def open(self) -> IncidentQuerySet:
        return self.filter(resolved_at=None)

    def silenced(self, now: datetime) -> IncidentQuerySet:
        """Return the incidents of which no alert is announced at *now*, as ``Incident.is_silenced`` says."""
        rows = self.filter(resolved_at=None, silenced_until__gt=now)
        names = rows.order_by().values("silenced_by")
        in_force = models.Q(pk__in=[])
        for user in get_user_model().objects.filter(username__in=names):
            if acting(user, ANY_IDENTITY) is None:
                continue
            manageable = Incident.objects.manageable_by(user).order_by().values("pk")
            in_force |= models.Q(silenced_by=user.get_username(), pk__in=manageable)
        return rows.filter(in_force)


class Incident(models.Model):
    """A cause of failures or alerts, from *opened_at* to *resolved_at*.

    Attributes:
        signature: the cause by the texts of the failures; of several, the most frequent when it was opened.
        kind, name: the part of the grid at fault (``Attribution``); with the kind ``at``, the site at which
            the runs failed, as no part was found to be at fault. Both are empty if the site is not known.
            Of an incident of alerts: ``reporter`` or ``series``, and its name.
        condition: the condition of the alerts, if alerts opened it; empty: failed runs did.
        headline: its title, if alerts opened it.
        since: the slot of the first failed run, or the beginning of the first alert's condition.
        is_held: whether its notifications are held back, as the monitor itself is suspected.
        acknowledged_by, silenced_by: the users. They withhold messages while they may change the incident.
        silenced_until: until when no alert of it is announced.
        resolution: what ended it.
    """

    signature = models.ForeignKey(FailureSignature, models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=11, blank=True)
    name = models.CharField(max_length=201, blank=True)
    condition = models.CharField(max_length=50, blank=True)
    headline = models.CharField(max_length=200, blank=True)
    since = models.DateTimeField()
    opened_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True)
    assigned_to = models.CharField(max_length=150, blank=True)
    is_held = models.BooleanField(default=False)
    silenced_until = models.DateTimeField(null=True)
    silenced_by = models.CharField(max_length=150, blank=True)
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.CharField(max_length=150, blank=True, help_text="the user; empty: the service")
    resolution = models.TextField(blank=True)

    objects = IncidentQuerySet.as_manager()

    class Meta:
        ordering = ["-opened_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "name", "condition"],
                condition=models.Q(resolved_at=None) & ~models.Q(kind__in=["", "at"]),
                name="incident_of_a_part_open_once",
            ),
            models.UniqueConstraint(
                fields=["kind", "name", "signature"],
                condition=models.Q(resolved_at=None, kind__in=["", "at"]),
                name="incident_of_a_cause_open_once",
            ),
        ]
        indexes = [models.Index(fields=["signature", "name"], name="incident_same_cause")]

    def __str__(self) -> str:
        return f"{self.title}, {self.place}" if self.place else self.title

    def is_manageable_by(self, name: str) -> bool:
        """Return whether the user *name* exists, and may change the incident with all that it affects now."""
        user = get_user_model().objects.filter(username=name).first()
        if user is None or acting(user, ANY_IDENTITY) is None:
            return False
        return Incident.objects.manageable_by(user).filter(pk=self.pk).exists()

    def is_silenced(self, now: datetime) -> bool:
        """Return whether no alert of it is announced at *now*: a user that may change it now silenced it."""
        if self.resolved_at is not None or self.silenced_until is None or self.silenced_until <= now:
            return False
        return self.is_manageable_by(self.silenced_by)

    def is_acknowledged(self) -> bool:
        """Return whether a user that may change it now has acknowledged it."""
        return self.acknowledged_at is not None and self.is_manageable_by(self.acknowledged_by)

    @property
    def title(self) -> str:
        if self.kind == MONITOR:
            return "Suspect the monitor: many sites fail at once"
        return self.headline or (self.signature.title if self.signature else "Failures")

    @property
    def place(self) -> str:
        """The part at fault, or ``at`` and the site at which the runs failed; empty if it is not known."""
        return "" if self.kind == MONITOR else f"{self.kind} {self.name.replace('>', ' → ')}".strip()


class IncidentSeriesQuerySet(models.QuerySet["IncidentSeries"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> IncidentSeriesQuerySet:
        """Return the rows of series that *user* may see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        return self if sees_all(user) else self.filter(series__suite__in=visible_suites(user))


class IncidentSeries(models.Model):
    """A series that *incident* affects, from the slot *since* until it passed, or was affected otherwise."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="affected")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)

    objects = IncidentSeriesQuerySet.as_manager()

    class Meta:
        ordering = ["since", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["series"], condition=models.Q(until=None), name="series_in_one_open_incident"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series} in {self.incident}"


class IncidentAction(models.TextChoices):
    OPENED = "opened"
    AFFECTED = "affected"
    ALERTED = "alerted"  # an alert joined it
    RECOVERED = "recovered"
    ACKNOWLEDGED = "acknowledged"
    ASSIGNED = "assigned"
    COMMENTED = "commented"
    SILENCED = "silenced"
    RESOLVED = "resolved"


class IncidentEventQuerySet(models.QuerySet["IncidentEvent"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> IncidentEventQuerySet:
        """Return the entries without those about series that *user* may not see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        suites = visible_suites(user)
        return self.filter(models.Q(series=None) | models.Q(series__suite__in=suites))


class IncidentEvent(models.Model):
    """An entry of the timeline of *incident*, about *series* if it is one that is affected or recovers.

    *user* is empty if the service wrote it.
    """

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    action = models.CharField(max_length=12, choices=IncidentAction.choices)
    series = models.ForeignKey(Series, on_delete=models.CASCADE, null=True, related_name="+")
    user = models.CharField(max_length=150, blank=True)
    text = models.TextField(blank=True)

    objects = IncidentEventQuerySet.as_manager()

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.incident}: {self.action}"
