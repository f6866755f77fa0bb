"""States of metrics: what their forecasters have learned, and the forecast of the next run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q

from forecasting.base import Abstained, Source
from forecasting.series import OWN_SERIES, Forecaster, Observation
from monitor.analysis.forecasts import states
from monitor.analysis.forecasts.answer import ISSUED, compute, parameters, predictor_records, stale_at
from monitor.analysis.forecasts.defaults import HEADLINE, METHOD
from monitor.analysis.forecasts.input_digest import Input
from monitor.analysis.forecasts.inputs_sql import METRIC_VALUES
from monitor.analysis.forecasts.priors import new_forecaster
from monitor.analysis.forecasts.prune import keep_newest
from monitor.analysis.forecasts.score import score
from monitor.analysis.forecasts.statements import execute, execute_each, fetch
from monitor.analysis.forecasts.update import EPOCH, StateUpdate
from monitor.core.compression import pack_state
from monitor.core.db.timestamps import micros, moment
from monitor.models import Forecast, ForecastState, Metric

# Metrics with other names are followed from the first question about them on.
FOLLOWED_BY_DEFAULT = r"^(total|total_essential|total_core|stage\..*)\.seconds$"
STAGE = "stage."  # begins the name of each metric of a stage
PRUNE_EVERY = 16  # values
RECORD_PREDICTORS_EVERY = 8  # values
_SECOND = 1_000_000  # microseconds

_PREDICTORS = """
SELECT predictor.metric_id AS metric, other.id AS other, series.name AS series_name, other.name
FROM monitor_forecastpredictor AS predictor
JOIN monitor_series AS series ON series.id = predictor.series_id
JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_metric AS other ON other.segment_id = segment.id AND other.name = predictor.name
WHERE predictor.metric_id = ANY (%(metrics)b::bigint[]) ORDER BY predictor.id, other.id
"""
_PUBLISH = f"""
WITH {ISSUED}
UPDATE monitor_forecaststate SET forecast_id = one.id, median = %(median)b, stale_at = %(stale_at)b
FROM one WHERE metric_id = %(metric)b
"""  # noqa: S608  # constants
# How long the stages of a segment are expected to take.
_EXPLAIN = """
UPDATE monitor_forecaststate AS total SET explanation = stages.forecasts
FROM (
    SELECT metric.segment_id, jsonb_agg(jsonb_build_object('metric', name, 'mean', mean,
        'median', forecast.median, 'method', method, 'predictor', predictor) ORDER BY metric.id) AS forecasts
    FROM monitor_metric AS metric
    JOIN monitor_forecaststate AS stage ON stage.metric_id = metric.id
    JOIN monitor_forecast AS forecast ON forecast.id = stage.forecast_id
    WHERE segment_id = ANY (%(segments)b::bigint[]) AND name LIKE 'stage.%%'
    GROUP BY segment_id
) AS stages
JOIN monitor_metric AS metric ON metric.segment_id = stages.segment_id AND metric.name = %(headline)b
WHERE total.metric_id = metric.id AND explanation IS DISTINCT FROM stages.forecasts
"""
_RECORD_GAIN = """
UPDATE monitor_forecastpredictor AS predictor
SET n = %(n)b, gain = %(gain)b, p_value = %(p_value)b, is_kept = %(is_kept)b
FROM monitor_series AS series
WHERE predictor.metric_id = %(metric)b AND series.id = predictor.series_id
    AND series.name = %(series)b AND predictor.name = %(name)b
"""


class PredictorMetric(NamedTuple):
    """A predictor of *metric* (a key): the metric with the key *other*, which is *name* of *series_name*."""

    metric: int
    other: int
    series_name: str
    name: str


def metrics_of(*which: Q, **fields: Any) -> list[Metric]:
    """Return the metrics that match the filter, with their segments."""
    return list(Metric.objects.filter(*which, **fields).select_related("segment").order_by("pk"))


def followed(**fields: Any) -> list[Metric]:
    """Return the metrics matching *fields* for which the service keeps, or will keep, a current forecast."""
    return metrics_of(Q(name__regex=FOLLOWED_BY_DEFAULT) | Q(forecast_state__isnull=False), **fields)


class MetricUpdate(StateUpdate):
    """The update of the state of a *metric*, which ``metrics_of`` has loaded."""

    model = ForecastState
    relation = METRIC_VALUES

    def __init__(self, metric: Metric, hours: Iterable[datetime] = ()) -> None:
        super().__init__(metric.pk, metric.segment.series_id, hours)
        self.metric = metric
        self.forecaster = Forecaster(METHOD)
        self.forecast: Forecast | None = None

    def __str__(self) -> str:
        return f"{self.metric.name} of {self.metric.series.name}"

    @classmethod
    def read_sources(cls, updates: Iterable[MetricUpdate]) -> None:
        """Add predictors to the sources of each update.

        A predictor is identified by series and name: its metrics in every segment of this series become
        sources.
        """
        by_metric = {update.key: update.sources for update in updates}
        for predictor in fetch(PredictorMetric, _PREDICTORS, {"metrics": list(by_metric)}):
            by_metric[predictor.metric][predictor.other] = Source(predictor.series_name, predictor.name)

    def learn(self, inputs: Sequence[Input]) -> None:
        row = self.row
        if row.state is None:
            self.forecaster = new_forecaster(self.metric)
        else:
            self.forecaster = states.load(Forecaster, row.state)
        for value in inputs:
            source = self.sources[value.key]
            observation = Observation(
                value.time / _SECOND, value.known_at / _SECOND, value.value, value.ended_at / _SECOND
            )
            self.forecaster.observe(observation, source)
            if source == OWN_SERIES and observation.is_usable:
                row.last_time = max(row.last_time or EPOCH, moment(value.time))
        if inputs:
            self.forecaster.learn_until(inputs[-1].known_at / _SECOND)
            row.last_value = self.forecaster.last_value

    def answer(self, now: datetime) -> None:
        """Forecast the next run as of the last used input, so that *now* does not change the forecast."""
        if self.row.last_time is None or self.row.used_until is None:
            return
        try:
            self.forecast = compute(
                self.forecaster,
                self.metric.unit,
                self.row.used_until,
                metric_id=self.key,
                issued_at=now,
                last_time=self.row.last_time,
                last_value=self.row.last_value,
            )
        except Abstained:
            self.forecast = None

    def pack(self) -> None:
        self.row.state, self.row.versions = pack_state(self.forecaster.dump()), self.forecaster.versions()
        self.row.n = self.forecaster.used

    @classmethod
    def publish(cls, updates: Sequence[MetricUpdate], now: datetime) -> None:
        """Score earlier forecasts of the metrics, and issue the new forecasts."""
        score(now, [update.key for update in updates])
        forecasts = [(update.metric, update.forecast) for update in updates if update.forecast]
        execute_each(
            _PUBLISH,
            (
                {**parameters(forecast), "stale_at": stale_at(metric.segment.began_at, forecast)}
                for metric, forecast in forecasts
            ),
        )
        without = ForecastState.objects.filter(pk__in=[each.key for each in updates if not each.forecast])
        without.update(forecast=None, median=None, stale_at=None, explanation=None)
        segments = {update.metric.segment_id for update in updates}
        execute(_EXPLAIN, {"segments": list(segments), "headline": HEADLINE})
        _record_gains(update for update in updates if update.row.n % RECORD_PREDICTORS_EVERY == 0)
        # By the time of the newest input: an update by a predictor alone keeps the number of values.
        due = {
            update.key: update.metric.name
            for update in updates
            if (update.key + micros(update.row.used_until or EPOCH)) % PRUNE_EVERY == 0
        }
        keep_newest(due, now)


def _record_gains(updates: Iterable[MetricUpdate]) -> None:
    """Store the gain of each predictor of each metric."""
    rows = [
        {
            "metric": update.key,
            "series": record.predictor.series,
            "name": record.predictor.metric,
            "n": record.n,
            "gain": record.gain,
            "p_value": record.p_value,
            "is_kept": not record.dropped,
        }
        for update in updates
        if len(update.sources) > 1
        for record in predictor_records(update.forecaster)
    ]
    if rows:
        execute_each(_RECORD_GAIN, rows)
