"""Signs of life of the service's own parts."""

from django.db import models


class Heartbeat(models.Model):
    """One part of the service and when it was last heard of."""

    name = models.CharField(max_length=50, primary_key=True)
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
