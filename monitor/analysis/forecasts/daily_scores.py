"""Add the scores of forecasts to the sums of their day, suite, site, metric and method."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from forecasting.evaluation.metrics import absolute_errors
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.statements import execute

LARGEST_ERROR = 1e290  # a day's worth of such errors can be added
_TEN, _NINETY = QUANTILE_LEVELS.index(0.1), QUANTILE_LEVELS.index(0.9)
_FIVE, _NINETY_FIVE = QUANTILE_LEVELS.index(0.05), QUANTILE_LEVELS.index(0.95)
SUMS = (  # columns of ``DayScore``
    *("n", "absolute_error", "last_value_n", "last_value_error", "compared_error", "actual"),
    *("interval_n", "within_80", "within_90"),
)

_KEY = "metric, day, suite_id, site_id, method, unit"
# Each key occurs once, in order, so that concurrent callers cannot deadlock.
_ADD = f"""
INSERT INTO monitor_dayscore AS stored ({_KEY}, {", ".join(SUMS)})
SELECT metric.name, added.day, series.suite_id, place.site_id, added.method, metric.unit,
    {", ".join(f"sum(added.{name})" for name in SUMS)}
FROM unnest(%(metric)b::bigint[], %(day)b::date[], %(method)b::text[],
    {", ".join(f"%({name})b::float8[]" for name in SUMS)}
) AS added (metric, day, method, {", ".join(SUMS)})
JOIN monitor_metric AS metric ON metric.id = added.metric
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
JOIN monitor_series AS series ON series.id = segment.series_id
CROSS JOIN LATERAL (
    SELECT NULL::bigint AS site_id UNION ALL
    SELECT DISTINCT resource.site_id FROM monitor_binding AS binding
    JOIN monitor_resource AS resource ON resource.id = binding.resource_id
    WHERE binding.series_id = series.id
) AS place
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4 NULLS FIRST, 5, 6
ON CONFLICT ({_KEY}) DO UPDATE SET {", ".join(f"{name} = stored.{name} + excluded.{name}" for name in SUMS)}
"""  # noqa: S608  # constants of this module
_PRUNE = """
DELETE FROM monitor_dayscore AS old USING monitor_suite AS suite
WHERE old.suite_id = suite.id AND old.day < %(today)b::date - suite.keep_daily_days
"""


class ScoredForecast(NamedTuple):
    """A forecast of *metric* whose actual value just arrived; the fields are columns of ``Forecast``."""

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


def add(scored: Sequence[ScoredForecast]) -> None:
    """Add the scores of *scored*, the forecasts whose actual values arrived.

    Call it once for each forecast, in the transaction that scores the forecast.
    """
    if scored:
        keys = {
            "metric": [forecast.metric for forecast in scored],
            "day": [forecast.truth_time.astimezone(UTC).date() for forecast in scored],
            "method": [forecast.method for forecast in scored],
        }
        execute(_ADD, {**keys, **_summands(scored)})


def prune(now: datetime) -> int:
    """Delete the sums of days for which suites no longer keep daily rollups; return the number of rows."""
    return execute(_PRUNE, {"today": now.astimezone(UTC).date()})


def _summands(scored: Sequence[ScoredForecast]) -> dict[str, list[float]]:
    """Return a column for each of ``SUMS``: the number that each forecast adds to the sum."""
    actual, median = [forecast.truth for forecast in scored], [forecast.median for forecast in scored]
    has_baseline = np.array([forecast.last_value is not None for forecast in scored], bool)
    baseline = [forecast.truth if forecast.last_value is None else forecast.last_value for forecast in scored]
    errors = np.minimum(absolute_errors(actual, median), LARGEST_ERROR)
    summands = {
        "n": [1.0] * len(scored),
        "absolute_error": errors,
        "last_value_n": has_baseline,
        "last_value_error": np.minimum(absolute_errors(actual, baseline), LARGEST_ERROR),
        "compared_error": np.where(has_baseline, errors, 0.0),
        "actual": np.minimum(np.abs(actual), LARGEST_ERROR),
        "interval_n": [forecast.below is not None and forecast.upto is not None for forecast in scored],
        "within_80": [_is_within(forecast, _TEN, _NINETY) for forecast in scored],
        "within_90": [_is_within(forecast, _FIVE, _NINETY_FIVE) for forecast in scored],
    }
    return {name: np.asarray(column, np.float64).tolist() for name, column in summands.items()}


def _is_within(forecast: ScoredForecast, lower: int, upper: int) -> bool:
    """Return whether the actual value of *forecast* lies in an interval, ends included.

    *lower* and *upper* are the indexes of the ends of the interval in ``QUANTILE_LEVELS``.
    """
    return (
        forecast.below is not None
        and forecast.upto is not None
        and forecast.upto > lower
        and forecast.below <= upper
    )
