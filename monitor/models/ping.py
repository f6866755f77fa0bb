"""Runs that programs outside of gridcast report: the keys of their pings, and the starts they announce."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from monitor.models.series import Series
from monitor.models.token import digest

if TYPE_CHECKING:
    from datetime import datetime

PREFIX = "gcping"
MAX_RID_CHARACTERS = 100
USE_RECORDED_EVERY = timedelta(minutes=1)


class PingKeyQuerySet(models.QuerySet["PingKey"]):
    def find(self, text: str, now: datetime) -> PingKey | None:
        """Return the key *text* with its series, and record its use; None if it is unknown or revoked."""
        key = self.filter(sha256=digest(text), revoked_at=None).select_related("series__reporter").first()
        if key is not None:
            unrecorded = Q(used_at=None) | Q(used_at__lt=now - USE_RECORDED_EVERY)
            PingKey.objects.filter(unrecorded, pk=key.pk).update(used_at=now)
        return key

    def issue(self, series: Series, *, name: str, who: str, now: datetime) -> tuple[PingKey, str]:
        """Create a key for the pings of *series*; return it, and its text, which is not stored."""
        text = f"{PREFIX}_{secrets.token_urlsafe(32)}"
        key = self.create(
            series=series,
            name=name,
            prefix=text[: len(PREFIX) + 5],
            sha256=digest(text),
            created_at=now,
            created_by=who,
        )
        return key, text

    def revoke(self, *, who: str, now: datetime) -> int:
        """Revoke these keys, as far as they are not revoked; return the number of revoked keys."""
        return self.filter(revoked_at=None).update(revoked_at=now, revoked_by=who)


class PingKey(models.Model):
    """A secret in the address of a ping. It allows to report runs of one series, and nothing else.

    Only the hash is stored; the text has 256 random bits, so an unsalted SHA-256 is enough.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="ping_keys")
    name = models.CharField(max_length=100, blank=True, help_text="the program that uses it")
    prefix = models.CharField(max_length=20, help_text="the first characters of the key")
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    used_at = models.DateTimeField(null=True, help_text="time of the last ping, to the minute")
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=150, blank=True)

    objects = PingKeyQuerySet.as_manager()

    class Meta:
        ordering = ["series", "-created_at"]

    def __str__(self) -> str:
        return f"{self.prefix}... of {self.series}"


class ReportedStart(models.Model):
    """The slot of a run that a program outside of gridcast has named by *rid*, and when it started.

    An empty *rid* is the last start of the series that was announced without one. Of a report without an id
    that got another slot than its own time, *rid* has the SHA-256, with a space that no sender's id has.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="reported_starts")
    rid = models.CharField(max_length=MAX_RID_CHARACTERS, blank=True, help_text="the caller's id of the run")
    slot = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text="empty if no start was announced")
    received_at = models.DateTimeField()

    class Meta:
        ordering = ["-received_at"]
        constraints = [models.UniqueConstraint(fields=["series", "rid"], name="reported_start_once")]
        indexes = [models.Index(fields=["series", "slot"], name="reported_start_slot")]

    def __str__(self) -> str:
        return f"start of {self.series} at {self.slot:%Y-%m-%d %H:%M:%S}"
