"""The states of the forecasters of metrics and series, and their current forecasts."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.forecast import Forecast
from monitor.models.metric import Metric
from monitor.models.series import Series


class LearnedState(models.Model):
    """The state that a forecaster has learned from inputs in the depot. Only ``monitor.forecasts`` writes it.

    *state* is the packed forecaster (``forecasting.state``), *versions* the fingerprint of its methods. It
    has used exactly the inputs in the depot that were known at *used_until*, in the order in which they
    became known; *n* of them were its own. *used* is the digest of these inputs
    (``monitor.forecasts.input_digest``): it differs once one of them has changed. While the state
    *is_behind*, the depot may have further inputs, which are read in parts, and the answers stay the previous
    ones.
    """

    state = models.BinaryField(null=True)
    versions = models.BinaryField(null=True)
    used_until = models.DateTimeField(null=True)
    used = models.BinaryField(null=True)
    is_behind = models.BooleanField(default=True)
    n = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


class ForecastState(LearnedState):
    """A followed metric: its state, and its current *forecast*, of the next run.

    *last_time* is the slot of the newest value of the metric that was used, *last_value* that value. The
    forecast is null while there are too few values; after *stale_at* it is too old to be served.
    The *explanation* of a total gives the expected durations of its stages.

    The other fields are the track record: the scores of the newest *record_n* scored forecasts. For each
    level of ``QUANTILE_LEVELS``, *less* counts the actual values below that quantile, *most* the values that
    were at most equal to it. The coverage between two levels, ends included, is ``(most[upper] - less[lower])
    / record_n``.
    """

    metric = models.OneToOneField(Metric, models.CASCADE, primary_key=True, related_name="forecast_state")
    is_new = models.BooleanField(db_default=False, help_text="its predictors have not been chosen yet")
    last_time = models.DateTimeField(null=True)
    last_value = models.FloatField(null=True)

    forecast = models.ForeignKey(
        Forecast, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    stale_at = models.DateTimeField(null=True)
    explanation = models.JSONField(null=True)

    record_n = models.PositiveSmallIntegerField(default=0)
    mean_absolute_error = models.FloatField(null=True)
    relative_error = models.FloatField(null=True)
    mean_absolute_scaled_error = models.FloatField(null=True, help_text="relative to the baseline")
    winkler_score = models.FloatField(null=True, help_text="of the interval of the forecast")
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
    """A probe metric by which *metric* is predicted: the metric *name* of *series*, in any segment.

    Over *n* values the predictor reduced the mean absolute error by the share *gain*, with *p_value*
    (Diebold-Mariano test); null until they are computed. *is_kept* is false for a predictor that was dropped
    because it does not help.
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


class SuccessState(LearnedState):
    """The success forecaster of a series, and its answer for the next run.

    *probability* is the probability that the next run passes, from *n* runs. *expected_seconds* is the
    expected time until a run has passed if it is repeated at once after each failure, and *quantiles* has the
    quantiles of this time for ``QUANTILE_LEVELS``. Both are null while the duration of runs is unknown.
    """

    series = models.OneToOneField(Series, models.CASCADE, primary_key=True, related_name="success_state")
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
    """An *hour* with changed inputs of a series that the forecasts have not used yet.

    A row is written when dirty hours are merged and when an outcome is reported; it is deleted when every
    metric that uses this series is up to date. *due_at* is later if an input becomes known in the future,
    because a reporter's clock is fast.
    """

    series = models.ForeignKey(Series, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    hour = models.DateTimeField()
    due_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "pending changes"

    def __str__(self) -> str:
        return f"{self.series_id} from {self.hour}"
