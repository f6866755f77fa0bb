"""Reporters: the processes that run series."""

from __future__ import annotations

from django.db import models

HOME = "home"


class Reporter(models.Model):
    """A process that runs series, at most *capacity* runs at the same time."""

    name = models.SlugField(unique=True)
    capacity = models.PositiveSmallIntegerField(default=4)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def component(self) -> str:
        """The name under which the reporter sends heartbeats."""
        return f"reporter.{self.name}"

    @property
    def queue(self) -> str:
        """The Celery queue that carries the runs of this reporter."""
        return f"reporter.{self.name}"
