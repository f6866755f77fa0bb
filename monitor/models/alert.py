"""Alert rules, the alerts that rules opened, and the notifications of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.db.models.fields.json import KT

from monitor.models.author import Authored
from monitor.models.failure_signature import Severity
from monitor.models.incident import Incident
from monitor.models.natural_order import sort_name_field
from monitor.models.reporter import Reporter
from monitor.models.role import ANY_IDENTITY, acting
from monitor.models.run import Run
from monitor.models.series import Series
from monitor.models.site import OPERATE, Site, may_manage_everywhere
from monitor.models.suite import Suite, visible_suites
from monitor.models.visibility import has_row, sees_all
from monitor.models.webhook import WebhookReceiver

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

# What a rule can name: plural, singular.
WATCHED = {"suites": "suite", "sites": "site", "series": "series", "reporters": "reporter"}

CHANGE_RULES = "monitor.change_alertrule"
DEFAULT_PREFIX = "default-"  # of the names of default rules


class AlertRuleQuerySet(models.QuerySet["AlertRule"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> AlertRuleQuerySet:
        """Return the rules that watch everything, or something that *user* may see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        suites = visible_suites(user)
        watched = {
            "suites": models.Q(suite__in=suites),
            "sites": models.Q(site__in=Site.objects.visible_to(user).order_by().values("pk")),
            "series": models.Q(series__suite__in=suites),
            "reporters": models.Q(
                reporter__in=Reporter.objects.manageable_or_visible_to(user).order_by().values("pk")
            ),
        }
        # Few rules name probes: a series of one is looked for only for these.
        probes = models.ExpressionWrapper(models.OuterRef("probes"), ArrayField(models.CharField()))
        of_probe = Series.objects.alias(probes=probes).filter(  # type: ignore[misc]  # the stubs do not know the alias
            suite__in=suites, probes__contains=[models.F("probe")]
        )
        is_visible = models.Q(everything=True) | (~models.Q(probes=[]) & models.Q(has_row(of_probe)))
        for noun, is_seen in watched.items():
            named = getattr(AlertRule, noun).through.objects.filter(is_seen)
            is_visible |= models.Q(pk__in=named.order_by().values("alertrule"))
        return self.filter(is_visible)

    def manageable_by(self, user: AbstractBaseUser | AnonymousUser) -> AlertRuleQuerySet:
        """Return the rules that *user* may change; of a site admin, those that watch only its sites."""
        if may_manage_everywhere(user, CHANGE_RULES):
            return self
        sites = Site.objects.manageable_by(user, CHANGE_RULES)
        own = self.filter(everything=False, probes=[], suites=None, series=None, reporters=None)
        own = own.filter(sites__in=sites)
        elsewhere = AlertRule.sites.through.objects.exclude(site__in=sites).values("alertrule")
        return own.exclude(pk__in=elsewhere).distinct()

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete the rules with their alerts and messages, of which there may be 100,000.

        Django would read each alert to find its messages, and delete both a hundred at a time.
        """
        with transaction.atomic():
            alerts = Alert.objects.filter(rule__in=list(self.order_by().values_list("pk", flat=True)))
            Notification.objects.filter(alert__in=alerts).delete()
            alerts._raw_delete(self.db)  # noqa: SLF001  # only messages refer to alerts
            return super().delete()

    delete.alters_data = True  # type: ignore[attr-defined]  # as Django's: not called in templates,
    delete.queryset_only = True  # type: ignore[attr-defined]  # and no method of the manager


class AlertRule(Authored):
    """A rule that decides when an alert is open, and which channels are notified.

    The condition decides whether the rule watches series or remote reporters. Of what the rule names, it
    watches what its author may see now (``monitor.analysis.alerts.rule_authors``).

    Attributes:
        everything: whether the rule watches every series, or every remote reporter.
        suites, sites, series, reporters: what it watches otherwise. A rule about series: each series in a
            suite, each series that binds a resource of a site, named series, and each series of a reporter.
            A rule about reporters: the reporters at a site, and named reporters.
        probes: the names of probes whose series it watches as well.
        condition: the name of a file in ``monitor/analysis/alerts/conditions/`` or
            ``monitor/analysis/alerts/reporter_conditions/``, which gives the bounds of *threshold*.
        severity: how much its alerts matter; messages say so.
        notify: the channels.
        repeat_seconds: after how long the channels are told again of an open alert that was not acknowledged;
            null: never.
        is_default: whether the service created the rule. It is evaluated only while no other rule has its
            condition, and no grid file lists it.
    """

    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    title = models.CharField(max_length=200, blank=True)
    enabled = models.BooleanField(default=True)
    everything = models.BooleanField(default=False, help_text="watch every series, or every remote reporter")
    suites = models.ManyToManyField(Suite, blank=True, related_name="alert_rules")
    sites = models.ManyToManyField(Site, blank=True, related_name="alert_rules")
    series = models.ManyToManyField(Series, blank=True, related_name="alert_rules")
    reporters = models.ManyToManyField(Reporter, blank=True, related_name="alert_rules")
    probes = ArrayField(models.CharField(max_length=100), blank=True, default=list)
    severity = models.CharField(max_length=8, choices=Severity, default=Severity.MAJOR)
    condition = models.CharField(max_length=50, help_text="the kind of condition")
    threshold = models.PositiveIntegerField(
        help_text="how many runs, records or seconds the condition asks for"
    )
    notify = models.JSONField(default=list, blank=True, help_text='channels, e.g. [{"kind": "log"}]')
    repeat_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="notify again while an alert is open, after this long; empty: never"
    )
    is_default = models.BooleanField(default=False, editable=False)
    # The rule's fingerprint when every series that it watches was last evaluated; empty: no alert is open.
    judged_as = models.CharField(max_length=64, blank=True, editable=False)

    objects = AlertRuleQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(condition="") & models.Q(threshold__gte=1),
                name="alert_rule_has_a_condition",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AlertQuerySet(models.QuerySet["Alert"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> AlertQuerySet:
        """Return the alerts of series and reporters that *user* may see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        # By suite, so that the open alerts are read with their series, not all series for some alerts.
        is_visible = models.Q(series__suite__in=visible_suites(user))
        return self.filter(
            is_visible | models.Q(reporter__in=Reporter.objects.manageable_or_visible_to(user))
        )

    def manageable_by(self, user: AbstractBaseUser | AnonymousUser) -> AlertQuerySet:
        """Return the visible alerts that *user* may acknowledge; of a site admin, those of its sites."""
        visible = self.visible_to(user)
        if may_manage_everywhere(user):
            return visible
        reporters = Reporter.objects.manageable_by(user, OPERATE)
        return visible.filter(
            models.Q(series__in=Series.objects.manageable_by(user)) | models.Q(reporter__in=reporters)
        )

    def open(self) -> AlertQuerySet:
        return self.filter(closed_at=None)

    def acknowledge(self, who: str, now: datetime) -> int:
        """Mark the open alerts without an acknowledgement as acknowledged by *who*; return their number."""
        pending = self.filter(closed_at=None, acknowledged_at=None)
        return pending.update(acknowledged_at=now, acknowledged_by=who)

    def drop_lapsed_acknowledgements(self) -> int:
        """Drop those of open alerts whose users may not manage them now; return their number.

        The alerts wait for a user again: channels are told again of them, and others can acknowledge them.
        """
        taken = self.open().exclude(acknowledged_at=None)
        names = taken.order_by().values_list("acknowledged_by", flat=True).distinct()
        users = get_user_model().objects.in_bulk(names, field_name="username")
        dropped = 0
        for name in names:
            of_user = taken.filter(acknowledged_by=name)
            if name in users and acting(users[name], ANY_IDENTITY) is not None:
                managed = Alert.objects.manageable_by(users[name]).open().filter(acknowledged_by=name)
                of_user = of_user.exclude(pk__in=managed.order_by().values("pk"))
            dropped += of_user.update(acknowledged_at=None, acknowledged_by="")
        return dropped


class Alert(models.Model):
    """An alert: from *opened_at* to *closed_at*, the condition of a rule was met for a series or a reporter.

    *since* is the slot of the first run that did not pass, or that was not reported; of a reporter, the time
    from which on the condition was met. *incident* is null until the alert is grouped, within a minute. An
    acknowledgement withholds repeated messages while its user may manage the alert.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, null=True, related_name="alerts")
    reporter = models.ForeignKey(Reporter, on_delete=models.CASCADE, null=True, related_name="alerts")
    since = models.DateTimeField()
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    opened_by = models.ForeignKey(Run, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    closed_by = models.ForeignKey(Run, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    text = models.TextField(help_text="the reason for opening it")
    closed_text = models.TextField(blank=True, help_text="the reason for closing it")
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, help_text="the user who took it on")
    incident = models.ForeignKey(Incident, models.SET_NULL, null=True, related_name="alerts")

    objects = AlertQuerySet.as_manager()

    class Meta:
        ordering = ["-opened_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "series"], condition=models.Q(closed_at=None), name="alert_open_once"
            ),
            models.UniqueConstraint(
                fields=["rule", "reporter"],
                condition=models.Q(closed_at=None, reporter__isnull=False),
                name="alert_of_reporter_open_once",
            ),
            models.CheckConstraint(
                condition=models.Q(series=None, reporter__isnull=False)
                | models.Q(series__isnull=False, reporter=None),
                name="alert_of_a_series_or_a_reporter",
            ),
        ]
        indexes = [models.Index(fields=["-closed_at"], name="alert_latest")]

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}"

    @property
    def subject(self) -> str:
        """The name of the series or of the reporter."""
        return str(self.series or self.reporter)


class Event(models.TextChoices):
    OPENED = "opened"
    CLOSED = "closed"
    REPEATED = "repeated"  # it is still open


class NotificationQuerySet(models.QuerySet["Notification"]):
    def due(self, now: datetime) -> NotificationQuerySet:
        """Return the notifications to send now, oldest first, so that "opened" comes before "closed".

        Those of held incidents are not due, nor those to a receiver that has asked for a pause.
        """
        of_same = models.Q(alert=models.OuterRef("alert")) | models.Q(incident=models.OuterRef("incident"))
        before = Notification.objects.pending().filter(
            of_same, channel=models.OuterRef("channel"), pk__lt=models.OuterRef("pk")
        )
        waiting = WebhookReceiver.objects.waiting(now).filter(url=models.OuterRef("receiver"))
        ready = self.alias(receiver=KT("channel__url")).filter(
            ~models.Exists(before), ~models.Exists(waiting), due_at__lte=now
        )
        return ready.exclude(alert__incident__is_held=True).order_by("pk")

    def pending(self) -> NotificationQuerySet:
        """Return the notifications that are neither delivered nor given up nor withheld."""
        return self.filter(due_at__isnull=False)

    def withhold(self, reason: str) -> int:
        """Decide that the pending notifications are not sent; return their number."""
        return self.pending().update(due_at=None, withheld=reason)


class Notification(models.Model):
    """A message to one channel that an alert opened, is still open or closed, or of a suspected monitor.

    *alert* is null in a message about *incident*, the suspicion. *due_at* is null once the message has been
    delivered or *withheld*, or the service has given up.
    """

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, null=True, related_name="notifications")
    incident = models.ForeignKey(Incident, models.CASCADE, null=True, related_name="notifications")
    event = models.CharField(max_length=8, choices=Event.choices)
    channel = models.JSONField(help_text="the rule's channel at that time")
    due_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, help_text="the error of the last attempt")
    withheld = models.CharField(max_length=300, blank=True, help_text="why it is not sent")

    objects = NotificationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(alert=None, incident__isnull=False)
                | models.Q(alert__isnull=False, incident=None),
                name="notification_of_an_alert_or_an_incident",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(due_at__isnull=False), name="notification_due")
        ]

    def __str__(self) -> str:
        return f"{self.alert or self.incident} {self.event}, {self.kind}"

    @property
    def kind(self) -> str:
        return str(self.channel["kind"])

    @property
    def is_given_up(self) -> bool:
        return self.due_at is None and self.sent_at is None and not self.withheld


class Recheck(models.Model):
    """A time, *due_at*, at which the alert rules of a series have to be evaluated.

    A database trigger inserts a row when a run of the series ends in a state that conditions count. The
    evaluation inserts a further row for the time at which silence would open an alert.
    """

    # No index and no constraint: a row is written whenever a run ends, and soon deleted.
    series = models.ForeignKey(Series, models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    due_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="recheck_due")]

    def __str__(self) -> str:
        return f"{self.series_id} at {self.due_at}"
