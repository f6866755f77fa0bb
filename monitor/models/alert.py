"""Alert rules, the alerts that they opened, and who is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.run import Run
from monitor.models.series import Series, Suite
from monitor.models.site import Site

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_FAILURES = 100
LEAST_SILENT_SECONDS = 60
WATCHED = {"suites": "suite", "sites": "site", "series": "series"}  # that a rule may name, and one of them


class AlertRule(models.Model):
    """When an alert of a series is open, and who is told.

    It watches everything, or the series of its suites, those that bind a resource of its sites, and those
    that it names itself. It has one condition: so many runs in a row that did not pass, or so long a silence.
    """

    name = models.SlugField(unique=True)
    title = models.CharField(max_length=200, blank=True)
    enabled = models.BooleanField(default=True)
    everything = models.BooleanField(default=False, help_text="whether it watches every series")
    suites = models.ManyToManyField(Suite, blank=True, related_name="alert_rules")
    sites = models.ManyToManyField(Site, blank=True, related_name="alert_rules")
    series = models.ManyToManyField(Series, blank=True, related_name="alert_rules")
    failures_in_row = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="open while so many runs in a row did not pass"
    )
    silent_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="open when a run was expected and nothing has been heard of the series for so long since",
    )
    notify = models.JSONField(default=list, blank=True, help_text='who is told, e.g. [{"kind": "log"}]')
    # Of what it said when everything that it watches was last looked at; empty: nothing of it is open.
    judged_as = models.CharField(max_length=64, blank=True, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    failures_in_row__isnull=True,
                    silent_seconds__isnull=False,
                    silent_seconds__gte=LEAST_SILENT_SECONDS,
                )
                | models.Q(
                    silent_seconds__isnull=True,
                    failures_in_row__isnull=False,
                    failures_in_row__range=(1, MOST_FAILURES),
                ),
                name="alert_rule_has_one_condition",
                violation_error_message=f"Expected one of: failures in a row, 1 to {MOST_FAILURES}; "
                f"silent seconds, at least {LEAST_SILENT_SECONDS}.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AlertQuerySet(models.QuerySet["Alert"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> AlertQuerySet:
        return self.filter(series__in=Series.objects.visible_to(user))

    def open(self) -> AlertQuerySet:
        return self.filter(closed_at=None)


class Alert(models.Model):
    """What a rule has to say of a series, from when it was noticed until it was over.

    *since* is when the trouble began: the slot of the first run that did not pass, or was not heard of.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="alerts")
    since = models.DateTimeField()
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    opened_by = models.ForeignKey(Run, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    closed_by = models.ForeignKey(Run, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    text = models.TextField(help_text="why it was opened")
    closed_text = models.TextField(blank=True, help_text="why it was closed")

    objects = AlertQuerySet.as_manager()

    class Meta:
        ordering = ["-opened_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "series"], condition=models.Q(closed_at=None), name="alert_open_once"
            ),
        ]
        indexes = [models.Index(fields=["-closed_at"], name="alert_latest")]

    def __str__(self) -> str:
        return f"{self.rule}: {self.series}"


class Event(models.TextChoices):
    OPENED = "opened"
    CLOSED = "closed"


class NotificationQuerySet(models.QuerySet["Notification"]):
    def due(self, now: datetime) -> NotificationQuerySet:
        """What is to be sent now, oldest first; never the end of an alert before its beginning."""
        before = Notification.objects.filter(
            alert=models.OuterRef("alert"),
            channel=models.OuterRef("channel"),
            due_at__isnull=False,
            pk__lt=models.OuterRef("pk"),
        )
        return self.filter(~models.Exists(before), due_at__lte=now).order_by("pk")


class Notification(models.Model):
    """One channel is told that an alert was opened or closed.

    *due_at* is empty when it was told, or was given up.
    """

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="notifications")
    event = models.CharField(max_length=6, choices=Event.choices)
    channel = models.JSONField(help_text="as the rule said when it happened")
    due_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, help_text="what the last attempt came to")

    objects = NotificationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(due_at__isnull=False), name="notification_due")
        ]

    def __str__(self) -> str:
        return f"{self.alert} {self.event}, {self.kind}"

    @property
    def kind(self) -> str:
        return str(self.channel["kind"])

    @property
    def is_given_up(self) -> bool:
        return self.due_at is None and self.sent_at is None


class Recheck(models.Model):
    """Alert rules have to look at a series, from *due_at* on.

    The database itself writes one when a run of the series has come to an end that counts, whoever ended it;
    rules that wait for a silence write others.
    """

    # Written with every run that ends, and soon gone: neither looked up nor checked.
    series = models.ForeignKey(Series, models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    due_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="recheck_due")]

    def __str__(self) -> str:
        return f"{self.series_id} at {self.due_at}"
