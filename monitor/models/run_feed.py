"""The feed of ended runs: each subscriber gets every run that ends, in the order in which runs ended."""

from __future__ import annotations

from django.db import models

from monitor.models.run import State

WEBHOOKS, TRACES = "webhooks", "traces"


class RunSubscriber(models.Model):
    """A part of the service that follows ended runs; while it has no row, nothing is kept for it.

    Runs wait until *paused_until*, because they could not be handled.
    """

    name = models.CharField(max_length=20, primary_key=True)
    paused_until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class EndedRun(models.Model):
    """A run that ended, or that a late report corrected, and that *subscriber* has not handled yet.

    A database trigger writes a row for each subscriber, in the transaction that ends the run; imported runs
    have none. The subscriber deletes the row. There are no constraints, and no index but the key: a row is
    written whenever a run ends, and soon deleted.
    """

    subscriber = models.CharField(max_length=20)
    run = models.UUIDField()
    slot = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State.choices)
    at = models.DateTimeField(help_text="time by the database's clock")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.run}: {self.state}, for {self.subscriber}"
