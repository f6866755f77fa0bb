"""The audit record: what users and programs changed, and what they were denied. Rows are only added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import PermissionsMixin
from django.db import connection, models, transaction

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

VIEW_AUDIT = "monitor.view_auditevent"
BATCH = 5_000  # rows deleted in one transaction


class AuditOutcome(models.TextChoices):
    BEGUN = "begun"  # a command that works in several transactions; a later event says how it ended
    DONE = "done"
    DENIED = "denied"
    FAILED = "failed"  # with an error; a command that was begun may have made a part of its changes


class AuditChannel(models.TextChoices):
    PAGE = "page"
    API = "api"
    ADMIN = "admin"
    COMMAND = "command"
    SERVICE = "service"  # the service itself, for example when a rule's author has lost a right


class AuditEventQuerySet(models.QuerySet["AuditEvent"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> AuditEventQuerySet:
        """Return all events to operators and administrators, and to other users none."""
        may_view = user.is_active and isinstance(user, PermissionsMixin) and user.has_perm(VIEW_AUDIT)
        return self if may_view else self.none()

    def expire(self, before: datetime) -> int:
        """Delete up to ``BATCH`` events whose last repetition was *before*; return their number.

        The database permits it in transactions that set ``gridcast.audit_retention`` only.
        """
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('gridcast.audit_retention', 'on', true)")
            oldest = self.filter(last_at__lt=before).order_by("last_at").values("pk")[:BATCH]
            return self.filter(pk__in=list(oldest.values_list("pk", flat=True))).delete()[0]


class AuditEvent(models.Model):
    """A request or command that changed something or was denied.

    Attributes:
        at, last_at, repeats: denials of one kind are counted, and those of some minutes are one event.
        user: the name of the user; of a failed login, the name that was given; of a command, that of the user
            of the operating system. Users may be renamed or deleted: the event keeps the name.
        token: the first characters of the API token, if one authenticated the request.
        session: the first characters of the hash of the session's key.
        action: the method and the operation or page; or the command.
        target: the path of the request, or the arguments of the command.
        status: the HTTP status of the answer, or the exit status of the command.
        changes: what changed: a list of ``{"kind", "name", "before", "after"}``.
    """

    at = models.DateTimeField()
    last_at = models.DateTimeField()
    repeats = models.PositiveIntegerField(default=1)
    outcome = models.CharField(max_length=6, choices=AuditOutcome.choices)
    channel = models.CharField(max_length=7, choices=AuditChannel.choices)
    user = models.CharField(max_length=200, blank=True)
    token = models.CharField(max_length=20, blank=True)
    session = models.CharField(max_length=8, blank=True)
    address = models.CharField(max_length=45, blank=True)
    action = models.CharField(max_length=200)
    target = models.CharField(max_length=500, blank=True)
    status = models.SmallIntegerField(default=0)
    changes = models.JSONField(default=list)

    objects = AuditEventQuerySet.as_manager()

    class Meta:
        ordering = ["-last_at", "-id"]
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["-last_at", "-id"], name="audit_newest"),
            models.Index(fields=["user", "-last_at", "-id"], name="audit_of_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user or 'anonymous'}: {self.action} {self.outcome}"
