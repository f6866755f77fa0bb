"""Forecasts as they were issued, and how they fared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
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
        """Those whose truth is known, one to each truth: the last that was said before it."""
        return self.filter(truth__isnull=False, counts=True)


class Forecast(models.Model):
    """What was said of the next value of a metric, from all that was known when it was said.

    *quantiles* are of ``forecasting.series.QUANTILE_LEVELS``, in its order; *lower* and *upper* are those
    between which *level* lies. With *at* it was about a run that starts then, or later; without, about the
    next one. *last_value*, the newest that was known, is what the simplest method of all would have said.

    *others* is what the methods that it is made of would have said, medians by name, until the truth comes.

    *truth* is the first value of such a run that became known after it was said. Of the quantiles *below* are
    less than it, and *upto* not more. What was said again before the truth came, as a probe told something
    new, does not *count*. Of each metric the newest are kept (``monitor.forecasts.score.KEPT``),
    those that were given to somebody (``ForecastGiven``), and those that he has told an outcome of.
    """

    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="forecasts", db_index=False)
    issued_at = models.DateTimeField()
    method = models.CharField(max_length=50)
    predictor = models.CharField(max_length=300, blank=True, help_text="what else it listened to")
    at = models.DateTimeField(null=True, help_text="when the run starts that it is about")
    level = models.FloatField(help_text="the coverage that the interval promises, 0 to 1")
    last_time = models.DateTimeField(help_text="slot of the newest value it was made from")
    last_known_at = models.DateTimeField(help_text="when the latest news it was made from became known")
    last_value = models.FloatField(null=True)
    n = models.PositiveIntegerField(help_text="values it was made from")
    mean = models.FloatField()
    median = models.FloatField()
    lower = models.FloatField()
    upper = models.FloatField()
    quantiles = ArrayField(models.FloatField(), null=True)
    others = models.JSONField(null=True)
    truth = models.FloatField(null=True)
    truth_time = models.DateTimeField(null=True)
    below = models.SmallIntegerField(null=True)
    upto = models.SmallIntegerField(null=True)
    counts = models.BooleanField(db_default=True)

    objects = ForecastQuerySet.as_manager()

    class Meta:
        ordering = ["-last_known_at", "-id"]
        indexes = [
            models.Index(fields=["metric", "method", "last_known_at"], name="forecast_newest"),
            models.Index(fields=["metric"], condition=models.Q(truth=None), name="forecast_unscored"),
            models.Index(
                fields=["issued_at"],
                condition=models.Q(at__isnull=False) | models.Q(counts=False),
                name="forecast_passing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric}: {self.mean:.3g}"

    @property
    def covered(self) -> bool | None:
        """Whether the truth lay in the interval; None until it is known."""
        return None if self.truth is None else self.lower <= self.truth <= self.upper


class ForecastGiven(models.Model):
    """A forecast that a program was given, about at *given_at* for the last time: it may still tell what
    became of its job. Beside the forecast, as that is locked while it is scored.
    """

    forecast = models.OneToOneField(
        Forecast, models.CASCADE, primary_key=True, related_name="given", db_constraint=False
    )
    given_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "forecasts given"

    def __str__(self) -> str:
        return f"{self.forecast_id} at {self.given_at}"
