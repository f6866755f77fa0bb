"""SQL of the metrics of series: one statement per family, whose cost grows with the described series only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.core.db import binary
from monitor.web.status import latest_sql
from monitor.web.status.latest import STATE_OR_SKIPPED

MOST_STAGES = 32  # of one series
LEVELS = (0.05, 0.1, 0.5, 0.9, 0.95)  # of exported quantiles

# The newest passed run lies in the hour before hours_end, so the statement reads one index entry per series.
_RESULTS = f"""
SELECT latest.series_id, {STATE_OR_SKIPPED}, date_part('epoch', coalesce(latest.ended_at, latest.slot)),
    latest.metric, date_part('epoch', success.time), date_part('epoch', success.known_at)
FROM {latest_sql.current_rows("series_id = ANY (%b)")} AS latest
LEFT JOIN LATERAL (
    SELECT time, known_at FROM monitor_sample AS sample WHERE sample.metric_id = latest.metric AND passed
        AND time >= latest.hours_end - interval '1 hour' AND time < latest.hours_end
    ORDER BY time DESC LIMIT 1
) AS success ON true
"""  # noqa: S608 - constants
# LIMIT 1 keeps the planner from reading all samples between the oldest and the newest passed run.
_VALUES = """
SELECT success.series, metric.name, sample.value
FROM unnest(%b::bigint[], %b::bigint[], %b::float8[]) AS success (series, headline, epoch)
JOIN monitor_metric AS headline ON headline.id = success.headline
CROSS JOIN LATERAL (
    SELECT id, name FROM monitor_metric WHERE segment_id = headline.segment_id AND {condition}
    ORDER BY name LIMIT {most}
) AS metric
CROSS JOIN LATERAL (
    SELECT value FROM monitor_sample WHERE metric_id = metric.id AND time = to_timestamp(success.epoch)
        AND time BETWEEN to_timestamp(%b) AND to_timestamp(%b) LIMIT 1
) AS sample
"""
_TOTALS = _VALUES.format(
    condition="name IN ('total.seconds', 'total_essential.seconds', 'total_core.seconds')", most=3
)
_STAGES = _VALUES.format(condition="name LIKE 'stage.%%.seconds'", most=MOST_STAGES + 1)
_QUANTILES = ", ".join(f"forecast.quantiles[{QUANTILE_LEVELS.index(level) + 1}]" for level in LEVELS)
_FORECASTS = f"""
SELECT stored.series_id, {_QUANTILES}
FROM monitor_currentsegment AS stored
JOIN monitor_metric AS metric ON metric.segment_id = stored.segment_id AND metric.name = 'total.seconds'
JOIN monitor_forecaststate AS state ON state.metric_id = metric.id
JOIN monitor_forecast AS forecast ON forecast.id = state.forecast_id
WHERE stored.series_id = ANY (%b) AND forecast.quantiles IS NOT NULL AND state.stale_at > %b
"""  # noqa: S608 - constants
_SUCCESS = """
SELECT series_id, probability FROM monitor_successstate WHERE series_id = ANY (%b) AND probability IS NOT NULL
"""
_SITES = """
SELECT binding.series_id, string_agg(DISTINCT site.name, ',' ORDER BY site.name)
FROM monitor_binding AS binding JOIN monitor_resource AS resource ON resource.id = binding.resource_id
JOIN monitor_site AS site ON site.id = resource.site_id WHERE binding.series_id = ANY (%b) GROUP BY 1
"""


class SeriesResult(NamedTuple):
    """The newest result of a series.

    Attributes:
        state: empty if the series has no result.
        headline: the metric of the newest passed run's total.
        success_slot, success_end: of the newest passed run.

    Times are in seconds since 1970.
    """

    series: int
    state: str
    ended_at: float | None
    headline: int | None
    success_slot: float | None
    success_end: float | None


def results(series: Sequence[int]) -> list[SeriesResult]:
    with binary.cursor() as cursor:
        rows = cursor.execute(_RESULTS.encode(), [series, series], binary=True)
        return [SeriesResult(*row) for row in rows]


def totals(newest: Sequence[SeriesResult]) -> list[tuple[int, str, float]]:
    """Return the series, the metric's name and the value of each total of the newest passed runs."""
    return _values(_TOTALS, newest)


def stages(newest: Sequence[SeriesResult]) -> list[tuple[int, str, float]]:
    """Return the stages like ``totals``; at most ``MOST_STAGES`` + 1 of a series."""
    return _values(_STAGES, newest)


def _values(statement: str, newest: Sequence[SeriesResult]) -> list[tuple[int, str, float]]:
    passed = [each for each in newest if each.success_slot is not None]
    if not passed:
        return []
    slots = [each.success_slot for each in passed if each.success_slot is not None]
    columns = [[each.series for each in passed], [each.headline for each in passed], slots]
    with binary.cursor() as cursor:
        return cursor.execute(statement.encode(), [*columns, min(slots), max(slots)], binary=True).fetchall()


def forecasts(series: Sequence[int], now: datetime) -> list[tuple[Any, ...]]:
    """Return the series and the quantiles at ``LEVELS`` of each current forecast."""
    with binary.cursor() as cursor:
        return cursor.execute(_FORECASTS.encode(), [series, now], binary=True).fetchall()


def success_probabilities(series: Sequence[int]) -> list[tuple[int, float]]:
    with binary.cursor() as cursor:
        return cursor.execute(_SUCCESS, [series]).fetchall()


def sites(series: Sequence[int]) -> dict[int, str]:
    """Return the names of the sites of each series, joined by commas."""
    with binary.cursor() as cursor:
        return dict(cursor.execute(_SITES, [series]).fetchall())
