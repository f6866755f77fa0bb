"""Which resources the runs of a series use, and in which roles."""

from __future__ import annotations

from django.db import models


class Binding(models.Model):
    """The binding of one resource in one role of a series.

    *position* is the place of the resource in the role, for example in a ring.
    """

    series = models.ForeignKey("monitor.Series", on_delete=models.CASCADE, related_name="bindings")
    role = models.CharField(max_length=50)
    position = models.PositiveSmallIntegerField()
    resource = models.ForeignKey("monitor.Resource", on_delete=models.PROTECT, related_name="bindings")

    class Meta:
        ordering = ["series", "role", "position"]
        constraints = [
            models.UniqueConstraint(fields=["series", "role", "position"], name="binding_position_once"),
            models.UniqueConstraint(fields=["series", "role", "resource"], name="binding_resource_once"),
        ]

    def __str__(self) -> str:
        return f"{self.role}[{self.position}] = {self.resource}"
