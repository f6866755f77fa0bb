"""Changes of maintenance windows by imports and declarations: who, when, what and why."""

from __future__ import annotations

from django.db import models

from monitor.models.hold import MAX_REASON_CHARACTERS


class MaintenanceAction(models.TextChoices):
    ADDED = "added"
    CHANGED = "changed"
    SHORTENED = "shortened"  # an open window that the feed announces no more ends now
    REMOVED = "removed"
    DECLARED = "declared"  # after the fact


class MaintenanceChange(models.Model):
    """One change of a window. The window is named, not referenced: it may be removed later."""

    window = models.SlugField(help_text="name of the maintenance window")
    source = models.SlugField(help_text="name of the feed; declared: a user")
    action = models.CharField(max_length=10, choices=MaintenanceAction)
    at = models.DateTimeField()
    who = models.CharField(max_length=200)
    before = models.TextField(blank=True, help_text="title, times and sites before the change")
    after = models.TextField(blank=True, help_text="title, times and sites after the change")
    why = models.CharField(max_length=MAX_REASON_CHARACTERS)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.window}: {self.action} by {self.who}"
