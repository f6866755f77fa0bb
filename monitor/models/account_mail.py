"""Mail to users about their accounts that the control worker has still to send."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import models

LONGEST_PAUSE = timedelta(hours=1)  # between two attempts


class AccountMailQuerySet(models.QuerySet["AccountMail"]):
    def due(self, now: datetime) -> AccountMailQuerySet:
        """Return the mails to send at *now*; one of a clock ahead waits longer than any pause, and is due."""
        return self.exclude(due_at__range=(now + datetime.resolution, now + LONGEST_PAUSE))


class AccountMail(models.Model):
    """A mail to *user*; the row is deleted when the mail server has accepted it, or at *until*."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    subject = models.CharField(max_length=200)
    text = models.TextField()
    until = models.DateTimeField(help_text="it is of no use later")
    due_at = models.DateTimeField(db_index=True)
    attempts = models.PositiveSmallIntegerField(default=0)

    objects = AccountMailQuerySet.as_manager()

    def __str__(self) -> str:
        return f"mail to {self.user}: {self.subject}"
