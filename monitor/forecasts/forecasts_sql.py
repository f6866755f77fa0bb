"""Store forecasts, and the current forecast of each metric, in few statements."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from monitor.forecasts.defaults import HEADLINE
from monitor.forecasts.statements import execute, execute_each, fetch
from monitor.models import ForecastState

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
    SELECT id FROM monitor_forecast
    WHERE metric_id = %(metric)b AND method = %(method)b AND last_known_at = %(last_known_at)b
        AND at IS NOT DISTINCT FROM %(at)b::timestamptz AND n = %(n)b AND quantiles = %(quantiles)b::float8[]
    ORDER BY id LIMIT 1
), issued AS ({_INSERT} WHERE NOT EXISTS (SELECT FROM same) RETURNING id),
one AS (SELECT id FROM same UNION ALL SELECT id FROM issued)
"""  # noqa: S608  # constants of this module
_ISSUE = f"WITH {_ISSUED} SELECT id FROM one"  # noqa: S608
_PUBLISH = f"""
WITH {_ISSUED}
UPDATE monitor_forecaststate SET forecast_id = one.id, stale_at = %(stale_at)b
FROM one WHERE metric_id = %(metric)b
"""  # noqa: S608
_EXPLAIN = """
UPDATE monitor_forecaststate AS total SET explanation = stages.forecasts
FROM (
    SELECT metric.segment_id, jsonb_agg(jsonb_build_object('metric', name, 'mean', mean, 'median', median,
        'method', method, 'predictor', predictor) ORDER BY metric.id) AS forecasts
    FROM monitor_metric AS metric
    JOIN monitor_forecaststate AS stage ON stage.metric_id = metric.id
    JOIN monitor_forecast AS forecast ON forecast.id = stage.forecast_id
    WHERE segment_id = ANY (%(segments)b::bigint[]) AND name LIKE 'stage.%%'
    GROUP BY segment_id
) AS stages
JOIN monitor_metric AS metric ON metric.segment_id = stages.segment_id AND metric.name = %(headline)b
WHERE total.metric_id = metric.id AND explanation IS DISTINCT FROM stages.forecasts
"""


class IssuedForecast(NamedTuple):
    id: int


def issue(forecast: Forecast) -> int:
    """Store *forecast* unless the same is stored already; return its key."""
    return fetch(IssuedForecast, _ISSUE, _parameters(forecast))[0].id


def publish(forecasts: Iterable[tuple[Forecast, datetime]]) -> None:
    """Store forecasts, each as the current one of its metric until it is stale at the time beside it."""
    rows = ({**_parameters(forecast), "stale_at": stale_at} for forecast, stale_at in forecasts)
    execute_each(_PUBLISH, rows)


def withdraw(metrics: Collection[int]) -> None:
    """Make *metrics* have no current forecast."""
    rows = ForecastState.objects.filter(pk__in=metrics, forecast__isnull=False)
    rows.update(forecast=None, stale_at=None, explanation=None)


def explain(segments: Collection[int]) -> None:
    """Write into the state of each segment's total how long its stages are expected to take."""
    execute(_EXPLAIN, {"segments": list(segments), "headline": HEADLINE})


def _parameters(forecast: Forecast) -> dict[str, Any]:
    others = json.dumps(forecast.others) if forecast.others else None
    return {**vars(forecast), "metric": forecast.metric_id, "others": others}
