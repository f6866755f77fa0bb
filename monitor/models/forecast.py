"""Forecasts as they were issued, and their scores."""

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

    def scored(self) -> ForecastQuerySet:
        """Return the scored forecasts that count: the last forecast issued before each actual value."""
        return self.filter(truth__isnull=False, counts=True)


class Forecast(models.Model):
    """A forecast of the next value of a metric, from all inputs that were known when it was issued.

    Attributes:
        at: the forecast is for the first run that starts at this time or later; null: for the next run.
        level: the probability of the interval from *lower* to *upper*.
        last_value: the newest known value, which is the forecast of the baseline.
        quantiles: the quantiles at ``QUANTILE_LEVELS``.
        others: the medians of the combined methods, by name, until the forecast is scored.
        basis: what a forecast by the method ``elsewhere`` is based on
        (``monitor.analysis.forecasts.elsewhere``). truth: the actual value: the first value of such a run
        that became known after the forecast was
            issued.
        truth_time: the slot of the actual value.
        below: the number of quantiles below the actual value.
        upto: the number of quantiles at or below the actual value.
        counts: whether this is the last forecast before its actual value. Several forecasts precede one
            actual value if, for example, a predictor has a new value meanwhile.

    The newest forecasts of each metric are kept (``monitor.analysis.forecasts.prune.KEPT``), and so are all
    forecasts that were delivered to a client or have an outcome.
    """

    metric = models.ForeignKey(Metric, on_delete=models.CASCADE, related_name="forecasts", db_index=False)
    issued_at = models.DateTimeField()
    method = models.CharField(max_length=50)
    predictor = models.CharField(max_length=300, blank=True, help_text="the predictor that was used")
    at = models.DateTimeField(null=True, help_text="start of the run that is forecast")
    level = models.FloatField(help_text="coverage of the interval, 0 to 1")
    last_time = models.DateTimeField(help_text="slot of the newest value that was used")
    last_known_at = models.DateTimeField(help_text="when the latest input that was used became known")
    last_value = models.FloatField(null=True)
    n = models.PositiveIntegerField(help_text="values that were used")
    mean = models.FloatField()
    median = models.FloatField()
    lower = models.FloatField()
    upper = models.FloatField()
    quantiles = ArrayField(models.FloatField(), null=True)
    others = models.JSONField(null=True)
    basis = models.JSONField(null=True, help_text="the replays and runs of a forecast from elsewhere")
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
    def off_by(self) -> float | None:
        """Return by how much the actual value exceeds the median; None until the actual value is known."""
        return None if self.truth is None else self.truth - self.median

    @property
    def covered(self) -> bool | None:
        """Return whether the actual value lies in the interval; None until the actual value is known."""
        return None if self.truth is None else self.lower <= self.truth <= self.upper


class ForecastDelivery(models.Model):
    """The last delivery of a forecast to a client; the client may report an outcome for the forecast.

    Deliveries have a table of their own, because rows of forecasts are locked while they are scored. If a
    client receives the same forecast repeatedly, *delivered_at* is updated once a day.
    """

    forecast = models.OneToOneField(
        Forecast, models.CASCADE, primary_key=True, related_name="delivery", db_constraint=False
    )
    delivered_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "forecast deliveries"

    def __str__(self) -> str:
        return f"{self.forecast_id} at {self.delivered_at}"
