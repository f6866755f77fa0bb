"""Forecasts as they were issued, and how they fared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from monitor.models.metric import Metric
from monitor.models.series import Series

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class ForecastQuerySet(models.QuerySet["Forecast"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> ForecastQuerySet:
        return self.filter(metric__segment__series__in=Series.objects.visible_to(user))

    def unscored(self) -> ForecastQuerySet:
        return self.filter(truth__isnull=True)

    def scored(self) -> ForecastQuerySet:
        return self.filter(truth__isnull=False)


class Forecast(models.Model):
    """What was said of the next value of a metric, from all that was known when it was said.

    Two forecasts from the same knowledge are one: (metric, method, level, last_known_at).
    """

    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="forecasts")
    issued_at = models.DateTimeField()
    method = models.CharField(max_length=50)
    level = models.FloatField(help_text="the coverage that the interval promises, 0 to 1")
    last_time = models.DateTimeField(help_text="slot of the newest value it was made from")
    last_known_at = models.DateTimeField(help_text="when the latest news it was made from became known")
    n = models.PositiveIntegerField(help_text="values it was made from")
    mean = models.FloatField()
    lower = models.FloatField()
    upper = models.FloatField()
    truth = models.FloatField(null=True)
    truth_time = models.DateTimeField(null=True)

    objects = ForecastQuerySet.as_manager()

    class Meta:
        ordering = ["-last_known_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["metric", "method", "level", "last_known_at"], name="forecast_knowledge_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric}: {self.mean:.3g}"

    @property
    def covered(self) -> bool | None:
        """Whether the truth lay in the interval; None until it is known."""
        return None if self.truth is None else self.lower <= self.truth <= self.upper
