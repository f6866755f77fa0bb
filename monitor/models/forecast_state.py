"""What is known of every metric that is followed: ready to be told, and to be gone on with."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.forecast import Forecast
from monitor.models.metric import Metric
from monitor.models.series import Series


class ForecastState(models.Model):
    """A metric that is followed. Written by ``monitor.forecasts.refresh`` alone.

    *state* is what ``forecasting.state`` keeps of its forecaster, which has used every input of the depot
    that was known at *used_until*, in the order of becoming known, and no other; *used* has a sum of what
    these were, hour by hour (``monitor.forecasts.input_digest``): it shows when one of them has changed.
    While it *is_behind* there may be more in the depot: it is being read, part by part, and the answer is the
    one from before.

    What follows is the newest answer, about the next run from what was known at *used_until*, so that who
    asks reads one row: null while there are too few values. *quantiles* are of
    ``forecasting.series.QUANTILE_LEVELS``. After *stale_at* it is too old to be told. *explanation* is what
    a total's stages are expected to take.

    The rest is how the newest ``record_n`` such answers to which the truth is known have fared
    (``Forecast``): to each probability of the grid, *less* has how many truths were less than that quantile,
    and *most* how many were not more. So the share that lay between two of them, ends included, is
    ``(most[upper] - less[lower]) / record_n``.
    """

    metric = models.OneToOneField(Metric, models.CASCADE, primary_key=True, related_name="forecast_state")
    state = models.BinaryField(null=True)
    versions = models.BinaryField(null=True, help_text="of the methods that made it")
    used_until = models.DateTimeField(null=True)
    used = models.BinaryField(null=True)
    is_behind = models.BooleanField(default=True)
    is_new = models.BooleanField(db_default=False, help_text="nobody has chosen its predictors yet")
    n = models.PositiveIntegerField(default=0, help_text="values of its own that were used")
    last_time = models.DateTimeField(null=True, help_text="slot of the newest of these")
    last_value = models.FloatField(null=True)

    forecast = models.ForeignKey(
        Forecast, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    issued_at = models.DateTimeField(null=True)
    method = models.CharField(max_length=50, blank=True)
    predictor = models.CharField(max_length=300, blank=True)
    mean = models.FloatField(null=True)
    median = models.FloatField(null=True)
    lower = models.FloatField(null=True)
    upper = models.FloatField(null=True)
    quantiles = ArrayField(models.FloatField(), null=True)

    stale_at = models.DateTimeField(null=True)
    explanation = models.JSONField(null=True)

    record_n = models.PositiveSmallIntegerField(default=0)
    mean_absolute_error = models.FloatField(null=True)
    relative_error = models.FloatField(null=True)
    mean_absolute_scaled_error = models.FloatField(null=True, help_text="against the last value")
    winkler_score = models.FloatField(null=True, help_text="of the interval from lower to upper")
    less = ArrayField(models.SmallIntegerField(), default=list)
    most = ArrayField(models.SmallIntegerField(), default=list)

    class Meta:
        indexes = [
            models.Index(fields=["metric"], condition=models.Q(is_behind=True), name="forecaststate_behind"),
            models.Index(fields=["metric"], condition=models.Q(is_new=True), name="forecaststate_new"),
        ]

    def __str__(self) -> str:
        return f"{self.metric_id}: {self.n} values"


class ForecastPredictor(models.Model):
    """A metric of another series, a probe, that *metric* is listening to; and whether that has helped.

    It is named, as it is of whichever segment that series is in. The figures are of the newest look, null
    before: over *n* values the mean absolute error was smaller by *gain* (a share) than without it, which by
    chance is so with *p_value*.
    """

    metric = models.ForeignKey(Metric, models.CASCADE, related_name="predictors", db_index=False)
    series = models.ForeignKey(Series, models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    n = models.PositiveIntegerField(default=0)
    gain = models.FloatField(null=True)
    p_value = models.FloatField(null=True)
    is_kept = models.BooleanField(null=True)

    class Meta:
        ordering = ["metric", "id"]
        constraints = [
            models.UniqueConstraint(fields=["metric", "series", "name"], name="forecastpredictor_once")
        ]

    def __str__(self) -> str:
        return f"{self.metric_id}: {self.name} of {self.series_id}"


class SuccessState(models.Model):
    """How the runs of a series have ended, as a ``ForecastState`` has what a metric showed.

    *probability* is that its next run passes, from *n* that did or did not. Until one has passed, begun anew
    after each that does not, it takes *expected_seconds*, or *quantiles* of
    ``forecasting.series.QUANTILE_LEVELS``: null where nothing is known of how long they take.
    """

    series = models.OneToOneField(Series, models.CASCADE, primary_key=True, related_name="success_state")
    state = models.BinaryField(null=True)
    versions = models.BinaryField(null=True)
    used_until = models.DateTimeField(null=True)
    used = models.BinaryField(null=True)
    is_behind = models.BooleanField(default=True)
    n = models.PositiveIntegerField(default=0)
    probability = models.FloatField(null=True)
    expected_seconds = models.FloatField(null=True)
    quantiles = ArrayField(models.FloatField(), null=True)

    class Meta:
        indexes = [
            models.Index(fields=["series"], condition=models.Q(is_behind=True), name="successstate_behind")
        ]

    def __str__(self) -> str:
        return f"{self.series_id}: {self.n} runs"


class PendingChange(models.Model):
    """An hour in which something of a series changed that is not used for forecasts yet.

    Written by who gathers ``DirtyHour``, and by who is told an outcome; taken away when every metric that
    hears of this series knows of it. What becomes known later, of a clock that is fast, is due then.
    """

    series = models.ForeignKey(Series, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    hour = models.DateTimeField()
    due_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "forecast news"

    def __str__(self) -> str:
        return f"{self.series_id} from {self.hour}"
