"""Reporters: the processes that run series."""

from __future__ import annotations

from django.db import models

HOME = "home"


class Reporter(models.Model):
    """A process that runs series; *capacity* bounds how many runs it has at once."""

    name = models.SlugField(unique=True)
    capacity = models.PositiveSmallIntegerField(default=4)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def component(self) -> str:
        """The name under which it gives signs of life."""
        return f"reporter.{self.name}"

    @property
    def queue(self) -> str:
        """The Celery queue that carries this reporter's runs."""
        return f"reporter.{self.name}"
