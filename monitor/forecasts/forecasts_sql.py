"""Forecasts as they are issued, and scored: written in few statements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from forecasting.base import LARGEST_VALUE
from monitor.db import binary

_INSERT = """
INSERT INTO monitor_forecast (metric_id, issued_at, method, predictor, at, level, last_time, last_known_at,
    last_value, n, mean, median, lower, upper, quantiles, others)
SELECT %(metric)b, %(issued_at)b, %(method)b, %(predictor)b, %(at)b, %(level)b, %(last_time)b,
    %(last_known_at)b, %(last_value)b, %(n)b, %(mean)b, %(median)b, %(lower)b, %(upper)b,
    %(quantiles)b::float8[], %(others)b::text::jsonb
"""
# From the same knowledge comes the same answer: it is issued once.
_ISSUED = f"""
same AS (
    SELECT id, issued_at FROM monitor_forecast
    WHERE metric_id = %(metric)b AND method = %(method)b AND last_known_at = %(last_known_at)b
        AND at IS NOT DISTINCT FROM %(at)b::timestamptz AND n = %(n)b AND quantiles = %(quantiles)b::float8[]
    ORDER BY id LIMIT 1
), issued AS ({_INSERT} WHERE NOT EXISTS (SELECT FROM same) RETURNING id, issued_at),
one AS (SELECT id, issued_at FROM same UNION ALL SELECT id, issued_at FROM issued)
"""  # noqa: S608  # our own words
_ISSUE = f"WITH {_ISSUED} SELECT id FROM one"  # noqa: S608
_ANSWER = f"""
WITH {_ISSUED}
UPDATE monitor_forecaststate AS state
SET forecast_id = one.id, issued_at = one.issued_at, method = %(method)b, predictor = %(predictor)b,
    mean = %(mean)b, median = %(median)b, lower = %(lower)b, upper = %(upper)b,
    quantiles = %(quantiles)b::float8[], stale_at = %(stale_at)b
FROM one WHERE metric_id = %(metric)b
"""  # noqa: S608
_SILENT = """
UPDATE monitor_forecaststate
SET forecast_id = NULL, issued_at = NULL, method = '', predictor = '', mean = NULL, median = NULL,
    lower = NULL, upper = NULL, quantiles = NULL, stale_at = NULL, explanation = NULL
WHERE metric_id = ANY (%b::bigint[]) AND mean IS NOT NULL
"""
_EXPLAIN = """
UPDATE monitor_forecaststate AS total SET explanation = its.said
FROM (
    SELECT metric.segment_id, jsonb_agg(jsonb_build_object('metric', name, 'mean', mean, 'median', median,
        'method', method, 'predictor', predictor) ORDER BY metric.id) AS said
    FROM monitor_metric AS metric JOIN monitor_forecaststate AS stage ON stage.metric_id = metric.id
    WHERE segment_id = ANY (%(segments)b::bigint[]) AND name LIKE 'stage.%%' AND mean IS NOT NULL
    GROUP BY segment_id
) AS its JOIN monitor_metric AS metric ON metric.segment_id = its.segment_id AND metric.name = %(headline)b
WHERE total.metric_id = metric.id AND explanation IS DISTINCT FROM its.said
"""
# The first that is later, of each: no other of its metric is looked at. What no method uses is no truth.
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
RETURNING forecast.metric_id, method, at, truth_time, truth, mean, median, last_value, lower, upper, below,
    upto, due.others, forecast.counts
"""  # noqa: S608
_RECORDS = """
SELECT metric, array_agg(truth), array_agg(median), array_agg(last_value), array_agg(lower), array_agg(upper),
    array_agg(below), array_agg(upto)
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
_KEEP_RECORD = """
UPDATE monitor_forecaststate
SET record_n = %(n)b, mean_absolute_error = %(mean_absolute_error)b, relative_error = %(relative_error)b,
    mean_absolute_scaled_error = %(mean_absolute_scaled_error)b, winkler_score = %(winkler_score)b,
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
    AND NOT EXISTS (SELECT FROM monitor_forecastgiven WHERE forecast_id = old.id)
"""
# What ``_PRUNE`` takes of metrics that have news, of all. The first condition is that of an index.
_FORGET_PASSING = """
DELETE FROM monitor_forecast WHERE id = ANY (ARRAY(
    SELECT id FROM monitor_forecast AS old
    WHERE (at IS NOT NULL OR NOT counts) AND (NOT counts OR at < %(day_ago)b) AND issued_at < %(day_ago)b
        AND NOT EXISTS (SELECT FROM monitor_outcome WHERE forecast_id = old.id)
        AND NOT EXISTS (SELECT FROM monitor_forecastgiven WHERE forecast_id = old.id)
    LIMIT %(at_most)b FOR UPDATE SKIP LOCKED))
"""


class Scored(NamedTuple):
    """A forecast of *metric* whose truth has just arrived; see ``monitor.models.Forecast``."""

    metric: int
    method: str
    at: datetime | None
    truth_time: datetime
    truth: float
    mean: float
    median: float
    last_value: float | None
    lower: float
    upper: float
    below: int | None
    upto: int | None
    others: str | None = None  # JSON
    counts: bool = True


class Record(NamedTuple):
    """The newest scored forecasts of *metric*, column by column."""

    metric: int
    truth: Sequence[float]
    median: Sequence[float]
    last_value: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    below: Sequence[int]
    upto: Sequence[int]


def issue(row: dict[str, Any]) -> int:
    """Keep one forecast, if it is not kept yet; its key."""
    with binary.cursor() as cursor:
        found = cursor.execute(_ISSUE, row).fetchone()
    return int(found[0]) if found else 0


def answer(rows: Sequence[dict[str, Any]]) -> None:
    """Keep forecasts, each as the answer of its metric's state."""
    with binary.cursor() as cursor:
        cursor.executemany(_ANSWER, rows)


def fall_silent(metrics: Collection[int]) -> None:
    """There is no answer of *metrics* any more."""
    with binary.cursor() as cursor:
        cursor.execute(_SILENT, [list(metrics)])


def explain(segments: Collection[int], headline: str) -> None:
    """Let the total of each of these segments say what their stages are expected to take."""
    with binary.cursor() as cursor:
        cursor.execute(_EXPLAIN, {"segments": list(segments), "headline": headline})


def score(now: datetime, metrics: Collection[int] | None = None) -> list[Scored]:
    """Give forecasts their truths; those of *metrics*, None: all."""
    which = "true" if metrics is None else "forecast.metric_id = ANY (%(metrics)b::bigint[])"
    told = {"now": now, "metrics": list(metrics or ())}
    with binary.cursor() as cursor:
        return [Scored(*row) for row in cursor.execute(_SCORE.format(which=which).encode(), told)]


def records(metrics: Collection[int], method: str, last: int) -> list[Record]:
    """Of those of *metrics* that have any."""
    told = {"metrics": list(metrics), "method": method, "last": last}
    with binary.cursor() as cursor:
        return [Record(*row) for row in cursor.execute(_RECORDS, told, binary=True)]


def keep_records(rows: Iterable[dict[str, Any]]) -> None:
    with binary.cursor() as cursor:
        cursor.executemany(_KEEP_RECORD, rows)


def prune(kept: Collection[tuple[int, int]], method: str, day_ago: datetime) -> None:
    """Of each of these metrics keep so many forecasts of the next run by *method* that count, and what else
    is not older; of those that do not count, or are about a time that is over, what is of less than a day."""
    metrics, most = zip(*kept, strict=True)
    told = {"metrics": list(metrics), "most": list(most), "method": method, "day_ago": day_ago}
    with binary.cursor() as cursor:
        cursor.execute(_PRUNE, told)


def forget_passing(day_ago: datetime, at_most: int) -> int:
    """Of all metrics let forecasts go that do not count, or are about a time that is over, and that nobody
    was given or has told an outcome of; how many."""
    with binary.cursor() as cursor:
        return cursor.execute(_FORGET_PASSING, {"day_ago": day_ago, "at_most": at_most}).rowcount
