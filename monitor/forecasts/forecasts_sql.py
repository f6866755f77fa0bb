"""Write forecasts when they are issued, score them, and delete old ones, each in few statements."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from forecasting.base import LARGEST_VALUE
from monitor.forecasts.statements import execute, execute_each, fetch

if TYPE_CHECKING:
    from monitor.models import Forecast

_INSERT = """
INSERT INTO monitor_forecast (metric_id, issued_at, method, predictor, at, level, last_time, last_known_at,
    last_value, n, mean, median, lower, upper, quantiles, others)
SELECT %(metric)b, %(issued_at)b, %(method)b, %(predictor)b, %(at)b, %(level)b, %(last_time)b,
    %(last_known_at)b, %(last_value)b, %(n)b, %(mean)b, %(median)b, %(lower)b, %(upper)b,
    %(quantiles)b::float8[], %(others)b::text::jsonb
"""
# The same forecast from the same values is stored once.
_ISSUED = f"""
same AS (
    SELECT id, issued_at FROM monitor_forecast
    WHERE metric_id = %(metric)b AND method = %(method)b AND last_known_at = %(last_known_at)b
        AND at IS NOT DISTINCT FROM %(at)b::timestamptz AND n = %(n)b AND quantiles = %(quantiles)b::float8[]
    ORDER BY id LIMIT 1
), issued AS ({_INSERT} WHERE NOT EXISTS (SELECT FROM same) RETURNING id, issued_at),
one AS (SELECT id, issued_at FROM same UNION ALL SELECT id, issued_at FROM issued)
"""  # noqa: S608  # constants of this module
_ISSUE = f"WITH {_ISSUED} SELECT id FROM one"  # noqa: S608
_PUBLISH = f"""
WITH {_ISSUED}
UPDATE monitor_forecaststate AS state
SET forecast_id = one.id, issued_at = one.issued_at, method = %(method)b, predictor = %(predictor)b,
    mean = %(mean)b, median = %(median)b, lower = %(lower)b, upper = %(upper)b,
    quantiles = %(quantiles)b::float8[], stale_at = %(stale_at)b
FROM one WHERE metric_id = %(metric)b
"""  # noqa: S608
_WITHDRAW = """
UPDATE monitor_forecaststate
SET forecast_id = NULL, issued_at = NULL, method = '', predictor = '', mean = NULL, median = NULL,
    lower = NULL, upper = NULL, quantiles = NULL, stale_at = NULL, explanation = NULL
WHERE metric_id = ANY (%(metrics)b::bigint[]) AND mean IS NOT NULL
"""
_EXPLAIN = """
UPDATE monitor_forecaststate AS total SET explanation = stages.forecasts
FROM (
    SELECT metric.segment_id, jsonb_agg(jsonb_build_object('metric', name, 'mean', mean, 'median', median,
        'method', method, 'predictor', predictor) ORDER BY metric.id) AS forecasts
    FROM monitor_metric AS metric JOIN monitor_forecaststate AS stage ON stage.metric_id = metric.id
    WHERE segment_id = ANY (%(segments)b::bigint[]) AND name LIKE 'stage.%%' AND mean IS NOT NULL
    GROUP BY segment_id
) AS stages
JOIN monitor_metric AS metric ON metric.segment_id = stages.segment_id AND metric.name = %(headline)b
WHERE total.metric_id = metric.id AND explanation IS DISTINCT FROM stages.forecasts
"""
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
_PRUNE = """
DELETE FROM monitor_forecast AS old
USING unnest(%(metrics)b::bigint[], %(most)b::bigint[]) AS kept (metric, most)
WHERE metric_id = metric AND (
    (NOT counts OR at < %(day_ago)b) AND issued_at < %(day_ago)b OR last_known_at < (
        SELECT last_known_at FROM monitor_forecast
        WHERE metric_id = metric AND method = %(method)b AND at IS NULL AND counts
        ORDER BY last_known_at DESC OFFSET most LIMIT 1
    )
) AND NOT EXISTS (SELECT FROM monitor_outcome WHERE forecast_id = old.id)
    AND NOT EXISTS (SELECT FROM monitor_forecastdelivery WHERE forecast_id = old.id)
"""
# As ``_PRUNE``, of metrics without new values. The first condition is that of an index.
_PRUNE_EXPIRED = """
DELETE FROM monitor_forecast WHERE id = ANY (ARRAY(
    SELECT id FROM monitor_forecast AS old
    WHERE (at IS NOT NULL OR NOT counts) AND (NOT counts OR at < %(day_ago)b) AND issued_at < %(day_ago)b
        AND NOT EXISTS (SELECT FROM monitor_outcome WHERE forecast_id = old.id)
        AND NOT EXISTS (SELECT FROM monitor_forecastdelivery WHERE forecast_id = old.id)
    LIMIT %(at_most)b FOR UPDATE SKIP LOCKED))
"""


class ScoredForecast(NamedTuple):
    """A forecast of *metric* whose actual value just arrived; the columns are those of ``Forecast``."""

    metric: int
    method: str
    at: datetime | None
    truth_time: datetime
    truth: float
    median: float
    last_value: float | None
    below: int | None
    upto: int | None
    others: str | None = None  # JSON
    counts: bool = True


class ScoredColumns(NamedTuple):
    """The newest scored forecasts of *metric*, column by column."""

    metric: int
    truth: Sequence[float]
    median: Sequence[float]
    last_value: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    below: Sequence[int]
    upto: Sequence[int]


class IssuedForecast(NamedTuple):
    id: int


def issue(forecast: Forecast) -> int:
    """Store *forecast* unless the same is stored already; return its key."""
    return fetch(IssuedForecast, _ISSUE, _parameters(forecast))[0].id


def publish(forecasts: Iterable[tuple[Forecast, datetime]]) -> None:
    """Store forecasts, each as the current answer of its metric until it is stale at the time beside it."""
    execute_each(_PUBLISH, ({**_parameters(one), "stale_at": stale_at} for one, stale_at in forecasts))


def withdraw(metrics: Collection[int]) -> None:
    """Remove the current answers of *metrics*."""
    execute(_WITHDRAW, {"metrics": list(metrics)})


def explain(segments: Collection[int], headline: str) -> None:
    """Write into the state of each segment's total how long its stages are expected to take."""
    execute(_EXPLAIN, {"segments": list(segments), "headline": headline})


def score(now: datetime, metrics: Collection[int] | None = None) -> list[ScoredForecast]:
    """Write actual values known at *now* to forecasts of *metrics* (None: of all); return what was scored."""
    which = "true" if metrics is None else "forecast.metric_id = ANY (%(metrics)b::bigint[])"
    return fetch(ScoredForecast, _SCORE.format(which=which), {"now": now, "metrics": list(metrics or ())})


def records(metrics: Collection[int], method: str, last: int) -> list[ScoredColumns]:
    """Return the *last* scored forecasts by *method* of those of *metrics* that have any."""
    return fetch(ScoredColumns, _RECORDS, {"metrics": list(metrics), "method": method, "last": last})


def write_records(rows: Iterable[dict[str, Any]]) -> None:
    execute_each(_WRITE_RECORD, rows)


def prune(kept: Collection[tuple[int, int]], method: str, day_ago: datetime) -> None:
    """Delete old forecasts of these metrics, each with the number of its forecasts to keep.

    Kept are so many newest forecasts of the next run by *method* that count, and other forecasts that are as
    new; of forecasts that do not count, or are about a past time, those of the last day.
    """
    metrics, most = zip(*kept, strict=True)
    execute(_PRUNE, {"metrics": list(metrics), "most": list(most), "method": method, "day_ago": day_ago})


def prune_expired(day_ago: datetime, at_most: int) -> int:
    """Delete forecasts of all metrics that do not count or are about a past time; return how many.

    Forecasts that were delivered, or have an outcome, stay.
    """
    return execute(_PRUNE_EXPIRED, {"day_ago": day_ago, "at_most": at_most})


def _parameters(forecast: Forecast) -> dict[str, Any]:
    others = json.dumps(forecast.others) if forecast.others else None
    return {**vars(forecast), "metric": forecast.metric_id, "others": others}
