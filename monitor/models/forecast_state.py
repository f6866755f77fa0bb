"""The states of the forecasters of metrics and series, and their current forecasts."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.forecast import Forecast
from monitor.models.metric import Metric
from monitor.models.series import Series


class LearnedState(models.Model):
    """The state that a forecaster has learned from the depot. Only ``monitor.analysis.forecasts`` writes it.

    Attributes:
        state: the packed forecaster (``forecasting.state``).
        versions: the fingerprint of the forecaster's methods.
        used_until: the forecaster has used exactly the inputs in the depot that were known at this time, in
            the order in which they became known.
        used: the digest of these inputs (``monitor.analysis.forecasts.input_digest``), which detects changed
        inputs. is_behind: whether the depot may have further inputs. They are read in parts; meanwhile the
        previous
            answers stay.
        n: the number of used inputs of the metric or series itself; inputs of predictors do not count.
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
    """The state of a metric, and the current *forecast* of its value in the next run.

    Attributes:
        prior: what other metrics taught when the first value was learned (``forecasting.prior``); empty if
            there were none. A reset keeps it.
        is_requested: a client asked while inputs were unread; until they are used, the metric comes first.
        last_value: the newest value of the metric that was used.
        last_time: the slot of this value.
        forecast: null while there are too few values.
        median: that of *forecast*, so that an overview need not read the forecast of each series.
        stale_at: after this time the forecast is too old to be served.
        explanation: the expected durations of the stages; only totals have it.
        record_n: the number of the newest scored forecasts to which the scores refer.
        less: for each level of ``QUANTILE_LEVELS``, the number of actual values below the forecast quantile.
        most: for each level, the number of actual values at or below the forecast quantile.

    The coverage between two levels, ends included, is ``(most[upper] - less[lower]) / record_n``.
    """

    metric = models.OneToOneField(Metric, models.CASCADE, primary_key=True, related_name="forecast_state")
    is_new = models.BooleanField(db_default=False, help_text="its predictors have not been chosen yet")
    is_requested = models.BooleanField(db_default=False, help_text="a client asked before it was computed")
    prior = models.BinaryField(null=True)
    last_time = models.DateTimeField(null=True)
    last_value = models.FloatField(null=True)

    forecast = models.ForeignKey(
        Forecast, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    median = models.FloatField(null=True)
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
        constraints = [
            models.CheckConstraint(
                condition=models.Q(less__len=models.F("most__len")), name="forecaststate_equal_lengths"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric_id}: {self.n} values"


class ForecastPredictor(models.Model):
    """A predictor of *metric*: the probe metric *name* of *series*, in any segment.

    Over *n* values the predictor reduced the mean absolute error by the share *gain*; *p_value* is the
    p-value of this gain (Diebold-Mariano test). Both are null until they are computed. *is_kept* is false for
    a predictor that was dropped because it does not help.
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

    Attributes:
        probability: the probability that the next run passes.
        expected_seconds: the mean time until a run has passed, if a failed run is repeated at once.
        quantiles: the quantiles of this time at ``QUANTILE_LEVELS``.

    The last two are null while the duration of runs is unknown.
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
    """An *hour* of a series in which inputs have changed and forecasts have not used the changes yet.

    A row is inserted when dirty hours are merged and when an outcome is reported. It is deleted when every
    metric that uses this series is up to date. *due_at* is set if an input becomes known only in the future,
    because the clock of a reporter is fast.
    """

    series = models.ForeignKey(Series, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    hour = models.DateTimeField()
    due_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "pending changes"

    def __str__(self) -> str:
        return f"{self.series_id} from {self.hour}"
