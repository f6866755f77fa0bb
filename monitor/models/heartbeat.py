"""Heartbeats of the service's own components."""

from django.db import models


class Heartbeat(models.Model):
    """A component of the service and its last heartbeat."""

    name = models.CharField(max_length=60, primary_key=True)
    seen_at = models.DateTimeField()
    back_at = models.DateTimeField(null=True, help_text="when its last silence ended")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
