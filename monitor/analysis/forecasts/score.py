"""Score forecasts when their actual values arrive, and store the track record that each answer contains."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from forecasting.base import LARGEST_VALUE
from forecasting.evaluation.metrics import forecast_scores
from forecasting.uncertainty.intervals import QUANTILE_LEVELS, lower_tail
from monitor.analysis.forecasts import daily_scores
from monitor.analysis.forecasts.daily_scores import ScoredForecast
from monitor.analysis.forecasts.defaults import LEVEL, METHOD
from monitor.analysis.forecasts.quantiles import quantile
from monitor.analysis.forecasts.statements import execute_each, fetch

RECORD_FORECASTS = 100  # that a record is computed from

# The actual value of a forecast is the first later one that a method can use.
_SCORE = f"""
WITH due AS (
    SELECT forecast.id, others, truth.value, truth.time, forecast.id = first_value(forecast.id) OVER (
        PARTITION BY forecast.metric_id, method, at, truth.time ORDER BY last_known_at DESC, forecast.id DESC
    ) AS counts
    FROM monitor_forecast AS forecast
    CROSS JOIN LATERAL (
        SELECT value, time FROM monitor_sample AS sample
        WHERE sample.metric_id = forecast.metric_id AND passed AND time > forecast.last_time
            AND time >= coalesce(forecast.at, forecast.last_time)
            AND known_at > forecast.issued_at AND known_at <= %(now)b
            AND value BETWEEN -{LARGEST_VALUE:g} AND {LARGEST_VALUE:g}
        ORDER BY time LIMIT 1
    ) AS truth
    WHERE {{which}} AND forecast.truth IS NULL
)
UPDATE monitor_forecast AS forecast SET truth = due.value, truth_time = due.time,
    upto = width_bucket(due.value, quantiles),
    below = (SELECT count(*) FROM unnest(quantiles) AS quantile WHERE quantile < due.value),
    counts = due.counts, others = NULL
FROM due WHERE forecast.id = due.id
RETURNING forecast.metric_id AS metric, method, at, truth_time, truth, median, last_value, below, upto,
    due.others::text AS others, forecast.counts
"""  # noqa: S608
_RECORDS = """
SELECT metric, array_agg(truth) AS truth, array_agg(median) AS median, array_agg(last_value) AS last_value,
    array_agg(lower) AS lower, array_agg(upper) AS upper, array_agg(below) AS below, array_agg(upto) AS upto
FROM unnest(%(metrics)b::bigint[]) AS wanted (metric)
CROSS JOIN LATERAL (
    SELECT truth, median, coalesce(last_value, 'NaN') AS last_value, lower, upper,
        coalesce(below, 0) AS below, coalesce(upto, 0) AS upto
    FROM monitor_forecast
    WHERE metric_id = metric AND method = %(method)b AND at IS NULL AND truth IS NOT NULL
        AND quantiles IS NOT NULL AND counts
    ORDER BY last_known_at DESC, id DESC LIMIT %(last)b
) AS scored GROUP BY metric
"""
_WRITE_RECORD = """
UPDATE monitor_forecaststate
SET record_n = %(record_n)b, mean_absolute_error = %(mean_absolute_error)b,
    relative_error = %(relative_error)b,
    mean_absolute_scaled_error = %(mean_absolute_scaled_error)b,
    winkler_score = %(winkler_score)b,
    less = %(less)b::smallint[], most = %(most)b::smallint[]
WHERE metric_id = %(metric)b
"""


class ScoredColumns(NamedTuple):
    """The newest scored forecasts of *metric*: one sequence per column of ``Forecast``."""

    metric: int
    truth: Sequence[float]
    median: Sequence[float]
    last_value: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    below: Sequence[int]
    upto: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class ForecastRecord:
    """The scores of the newest *record_n* forecasts of a metric by one method.

    The fields are those of ``ForecastState``. For each level of ``QUANTILE_LEVELS``, *less* counts the actual
    values below the forecast quantile, and *most* counts the actual values at or below the quantile.
    """

    record_n: int = 0
    mean_absolute_error: float | None = None
    relative_error: float | None = None
    mean_absolute_scaled_error: float | None = None
    winkler_score: float | None = None
    less: Sequence[int] = ()
    most: Sequence[int] = ()

    def coverage(self, level: float) -> float | None:
        """Return the share of actual values in the interval of *level*, ends included; None without data.

        The counts are interpolated between the levels of the stored quantiles.
        """
        if not self.record_n or not self.less:
            return None
        tail = lower_tail(level)
        return (quantile(self.most, 1.0 - tail) - quantile(self.less, tail)) / self.record_n


def score(now: datetime, metrics: Collection[int] | None = None) -> int:
    """Score the forecasts of *metrics* (None: of all) whose actual values are known; return their number.

    The actual value is the first value of a later slot that became known after the forecast was issued.
    """
    which = "true" if metrics is None else "forecast.metric_id = ANY (%(metrics)b::bigint[])"
    scored = fetch(ScoredForecast, _SCORE.format(which=which), {"now": now, "metrics": list(metrics or ())})
    counted = [forecast for forecast in scored if forecast.at is None and forecast.counts]
    daily_scores.add(_once([*counted, *(other for forecast in counted for other in _others(forecast))]))
    ours = {forecast.metric for forecast in scored if forecast.method == METHOD and forecast.at is None}
    if ours:
        records = _records(ours, METHOD).items()
        execute_each(_WRITE_RECORD, [{"metric": metric, **vars(record)} for metric, record in records])
    return len(scored)


def record_of(metric: int, method: str) -> ForecastRecord:
    """Return the record of the forecasts of a metric (its key) by *method*."""
    return _records([metric], method).get(metric, ForecastRecord())


def _records(metrics: Collection[int], method: str) -> dict[int, ForecastRecord]:
    """Return the records of the forecasts by *method*, by metric; omit metrics without scored forecasts."""
    parameters = {"metrics": list(metrics), "method": method, "last": RECORD_FORECASTS}
    return {columns.metric: _record(columns) for columns in fetch(ScoredColumns, _RECORDS, parameters)}


def _others(forecast: ScoredForecast) -> Iterator[ScoredForecast]:
    """Yield the forecasts of the same value that the parts of the method and the baseline made.

    These forecasts have no intervals.
    """
    medians = json.loads(forecast.others) if forecast.others else {}
    if forecast.last_value is not None:
        medians["last_value"] = forecast.last_value
    for method, median in medians.items():
        yield forecast._replace(method=method, median=median, below=None, upto=None, others=None)


def _once(scored: Iterable[ScoredForecast]) -> list[ScoredForecast]:
    """Return *scored* with only the first forecast of each actual value by each method.

    Duplicates arise because a method that a client names is also a part of the default method, and because
    every forecast contains the baseline.
    """
    first: dict[tuple[int, datetime, str], ScoredForecast] = {}
    for forecast in scored:
        first.setdefault((forecast.metric, forecast.truth_time, forecast.method), forecast)
    return list(first.values())


def _record(columns: ScoredColumns) -> ForecastRecord:
    intervals = columns.lower, columns.upper
    scores = forecast_scores(
        columns.truth, columns.median, *intervals, level=LEVEL, last_value=columns.last_value
    )
    upto, below = np.array(columns.upto), np.array(columns.below)
    return ForecastRecord(
        record_n=scores.n,
        mean_absolute_error=scores.mean_absolute_error,
        relative_error=scores.relative_error,
        mean_absolute_scaled_error=scores.mean_absolute_scaled_error,
        winkler_score=scores.winkler_score,
        less=[int((upto <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
        most=[int((below <= place).sum()) for place in range(len(QUANTILE_LEVELS))],
    )
