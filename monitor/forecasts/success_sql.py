"""Read the forecasts of totals, and write how likely series succeed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from monitor.forecasts.defaults import HEADLINE
from monitor.forecasts.statements import execute_each, fetch

_TOTALS = """
SELECT current.series_id AS series, total.mean, total.quantiles FROM monitor_currentsegment AS current
JOIN monitor_metric AS metric ON metric.segment_id = current.segment_id AND metric.name = %(name)b
JOIN monitor_forecaststate AS total ON total.metric_id = metric.id
WHERE current.series_id = ANY (%(series)b::bigint[]) AND total.mean IS NOT NULL
"""
# Times stay while there is no forecast of the total.
_WRITE = """
UPDATE monitor_successstate
SET probability = %(probability)b,
    expected_seconds = coalesce(%(expected_seconds)b::float8, expected_seconds),
    quantiles = coalesce(%(quantiles)b::float8[], quantiles)
WHERE series_id = %(series)b
"""


class TotalEstimate(NamedTuple):
    """How long the next run of *series* takes if it passes."""

    series: int
    mean: float
    quantiles: Sequence[float]


def totals(series: Collection[int]) -> list[TotalEstimate]:
    """Return the forecasts of the totals of those of *series* that have one, of their current segments."""
    return fetch(TotalEstimate, _TOTALS, {"series": list(series), "name": HEADLINE})


def write(rows: Iterable[dict[str, Any]]) -> None:
    """Write probabilities, and the time until a run has passed where it is known."""
    execute_each(_WRITE, rows)
