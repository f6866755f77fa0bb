"""Outcomes of jobs for which clients had requested forecasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from monitor.models.forecast import Forecast
from monitor.models.metric import Metric
from monitor.models.series import Series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class OutcomeQuerySet(models.QuerySet["Outcome"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> OutcomeQuerySet:
        return self.filter(metric__segment__series__in=Series.objects.visible_to(user))


class Outcome(models.Model):
    """The outcome of a real job for which a *forecast* was requested, as its *consumer* reported it.

    *job* is the consumer's name of the job. From *received_at* on, the duration *seconds* of a passed job is
    an input of forecasts. It counts as a value of the *metric* that was forecast, at the time *started_at*,
    unless many later runs are known already.
    """

    forecast = models.ForeignKey(Forecast, models.CASCADE, related_name="outcomes")
    metric = models.ForeignKey(Metric, models.CASCADE, related_name="outcomes", db_index=False)
    consumer = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="outcomes")
    job = models.CharField(max_length=200)
    passed = models.BooleanField()
    seconds = models.FloatField(null=True, help_text="how long it took to pass or to fail")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    received_at = models.DateTimeField()

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        ordering = ["-received_at"]
        constraints = [models.UniqueConstraint(fields=["consumer", "job"], name="outcome_job_once")]
        indexes = [models.Index(fields=["metric", "received_at"], name="outcome_history")]

    def __str__(self) -> str:
        return f"{self.job}: {'passed' if self.passed else 'failed'} after {self.seconds} s"
