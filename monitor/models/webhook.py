"""Webhooks, and the record of their deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.author import Authored
from monitor.models.natural_order import sort_name_field
from monitor.models.site import Site
from monitor.models.suite import Suite

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

MANAGE_WEBHOOKS = "monitor.manage_webhooks"  # permission to define webhooks and to see and repeat deliveries


class EventType(models.TextChoices):
    """What a webhook tells."""

    RUN_ENDED = "run.ended"
    SITE_DOWN = "site.down"
    SITE_UP = "site.up"
    PING = "webhook.ping"  # on request, to test a receiver


SUBSCRIBABLE = (EventType.RUN_ENDED, EventType.SITE_DOWN, EventType.SITE_UP)


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def in_force(self) -> WebhookQuerySet:
        return self.filter(enabled=True, suspended="")


class WebhookReceiverQuerySet(models.QuerySet["WebhookReceiver"]):
    def waiting(self, now: datetime) -> WebhookReceiverQuerySet:
        """Return the receivers that have asked not to get messages yet."""
        return self.filter(resume_at__gt=now)

    def gone(self) -> WebhookReceiverQuerySet:
        return self.filter(gone_at__isnull=False)

    def welcome(self, urls: Iterable[str]) -> None:
        """Send messages to the receivers at *urls* again, although they were gone: a user asks for it."""
        self.gone().filter(url__in=urls).delete()


class WebhookReceiver(models.Model):
    """What the receiver at *url*, of webhooks and of channels of alert rules, has asked for.

    Attributes:
        resume_at: no message is sent before; null if it does not ask for a pause.
        gone_at: when it answered 410 Gone; null if it did not.
        answer: its answer.
    """

    url = models.CharField(max_length=2000, primary_key=True)
    resume_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)
    answer = models.TextField()

    objects = WebhookReceiverQuerySet.as_manager()

    def __str__(self) -> str:
        return self.url


class Webhook(Authored):
    """A receiver of events, at *url*. It tells everything that it names: its author has to see all.

    Attributes:
        secret_variable: the environment variable of the control worker with the secrets that sign messages.
        events: the types of events that it receives.
        suites, sites: if any, only events of runs in these suites, and at these sites.
    """

    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    url = models.CharField(max_length=2000)
    secret_variable = models.CharField(max_length=100, blank=True)
    events = ArrayField(models.CharField(max_length=20, choices=EventType.choices))
    suites = models.ManyToManyField(Suite, blank=True, related_name="+")
    sites = models.ManyToManyField(Site, blank=True, related_name="+")
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]
        permissions = [("manage_webhooks", "Can define webhooks and repeat their deliveries")]

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class WebhookDeliveryQuerySet(models.QuerySet["WebhookDelivery"]):
    def pending(self) -> WebhookDeliveryQuerySet:
        return self.filter(state=DeliveryState.PENDING)

    def due(self, now: datetime) -> WebhookDeliveryQuerySet:
        """Return the oldest pending delivery of each webhook in force, if it is due; later ones wait.

        All wait while the receiver asks for a pause.
        """
        oldest = WebhookDelivery.objects.pending().filter(webhook=models.OuterRef("pk")).order_by("pk")
        ready = Webhook.objects.in_force().exclude(url__in=WebhookReceiver.objects.waiting(now).values("url"))
        heads = ready.values(head=models.Subquery(oldest.values("pk")[:1]))
        return self.filter(pk__in=heads, due_at__lte=now)


class WebhookDelivery(models.Model):
    """A message to a webhook: its *body* as it is sent, and what became of it.

    Attributes:
        message: the id that the receiver sees; the same in every attempt.
        due_at: when it is sent next; null unless it is pending.
        error: that of the last attempt.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    message = models.CharField(max_length=100)
    event = models.CharField(max_length=20, choices=EventType.choices)
    subject = models.CharField(max_length=100, help_text="the series or the site")
    body = models.TextField()
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.PENDING)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    ended_at = models.DateTimeField(null=True, help_text="when it was delivered or given up")
    error = models.TextField(blank=True)

    objects = WebhookDeliveryQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "message"], name="webhook_message_once"),
            models.CheckConstraint(
                condition=models.Q(state=DeliveryState.PENDING, due_at__isnull=False, ended_at=None)
                | models.Q(~models.Q(state=DeliveryState.PENDING), due_at=None, ended_at__isnull=False),
                name="webhook_delivery_due_if_pending",
            ),
        ]
        indexes = [
            models.Index(
                fields=["webhook", "id"],
                condition=models.Q(state=DeliveryState.PENDING),
                name="webhook_pending",
            ),
            models.Index(fields=["ended_at"], name="webhook_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.event} of {self.subject} to {self.webhook}"


class AnnouncedSite(models.Model):
    """The state of a site of which webhooks were told last: down, or up, and since when."""

    site = models.OneToOneField(Site, models.CASCADE, primary_key=True, related_name="+")
    is_down = models.BooleanField()
    since = models.DateTimeField()

    class Meta:
        ordering = ["site"]

    def __str__(self) -> str:
        return f"{self.site_id}: {'down' if self.is_down else 'up'}"
