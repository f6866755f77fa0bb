"""Write the predictors of metrics and how much they help; find metrics without chosen predictors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from monitor.forecasts.statements import execute, execute_each, fetch

_RECORD_GAIN = """
UPDATE monitor_forecastpredictor AS predictor
SET n = %(n)b, gain = %(gain)b, p_value = %(p_value)b, is_kept = %(is_kept)b
FROM monitor_series AS series
WHERE predictor.metric_id = %(metric)b AND series.id = predictor.series_id
    AND series.name = %(series)b AND predictor.name = %(name)b
"""
_NEW = """
SELECT state.metric_id AS metric, segment.series_id AS series
FROM (
    SELECT metric_id FROM monitor_forecaststate WHERE is_new ORDER BY metric_id LIMIT %(at_most)b
) AS state
JOIN monitor_metric AS metric ON metric.id = state.metric_id
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
"""
# Rows are locked in the order of their keys, as everywhere.
_SET_CHOSEN = """
UPDATE monitor_forecaststate SET is_new = false WHERE metric_id = ANY (ARRAY(
    SELECT metric_id FROM monitor_forecaststate WHERE metric_id = ANY (%(metrics)b::bigint[])
    ORDER BY metric_id FOR UPDATE))
"""
_SET_NEW = """
UPDATE monitor_forecaststate SET is_new = true WHERE metric_id = ANY (ARRAY(
    SELECT metric_id FROM monitor_forecaststate AS state
    JOIN monitor_metric AS metric ON metric.id = metric_id
    WHERE segment_id = ANY (%(segments)b::bigint[]) AND NOT is_new ORDER BY metric_id FOR UPDATE OF state))
"""
_DELETE = "DELETE FROM monitor_forecastpredictor WHERE metric_id = ANY (%(metrics)b::bigint[])"
_ENDED = """
SELECT state.metric_id AS metric, metric.name FROM monitor_forecaststate AS state
JOIN monitor_metric AS metric ON metric.id = state.metric_id
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
JOIN monitor_currentsegment AS kept ON kept.series_id = segment.series_id
    AND kept.segment_id IS DISTINCT FROM segment.id
WHERE NOT is_behind AND coalesce(last_time, began_at) < %(before)b
    AND EXISTS (SELECT FROM monitor_forecastpredictor WHERE metric_id = state.metric_id)
ORDER BY state.metric_id LIMIT %(at_most)b
"""
_INSERT = """
INSERT INTO monitor_forecastpredictor (metric_id, series_id, name, n)
SELECT %(metric)b, series.id, chosen.name, 0
FROM unnest(%(series)b::bigint[], %(names)b::text[]) WITH ORDINALITY AS chosen (series, name, place)
JOIN monitor_series AS series ON series.id = chosen.series
ORDER BY place FOR KEY SHARE OF series
"""


class NewMetric(NamedTuple):
    """A followed metric for which predictors have not been chosen yet, with its series."""

    metric: int
    series: int


class EndedMetric(NamedTuple):
    """A metric of an earlier segment that still has predictors."""

    metric: int
    name: str


def record_gains(rows: Iterable[dict[str, Any]]) -> None:
    """Write how much predictors help."""
    execute_each(_RECORD_GAIN, rows)


def replace(metric: int, chosen: Sequence[tuple[int, str]]) -> None:
    """Make the metrics of these (series, name) pairs the only predictors of *metric*, whose row is locked."""
    series, names = zip(*chosen, strict=True) if chosen else ((), ())
    delete([metric])
    execute(_INSERT, {"metric": metric, "series": list(series), "names": list(names)})


def delete(metrics: Collection[int]) -> None:
    """Delete the predictors of *metrics*, whose rows are locked."""
    execute(_DELETE, {"metrics": list(metrics)})


def ended(before: datetime, at_most: int) -> dict[int, str]:
    """Return metrics with predictors, of segments that are not current, without values since *before*: their
    names by key."""
    return {
        row.metric: row.name for row in fetch(EndedMetric, _ENDED, {"before": before, "at_most": at_most})
    }


def new(at_most: int) -> dict[int, int]:
    """Return followed metrics for which predictors have not been chosen yet, with their series."""
    return {row.metric: row.series for row in fetch(NewMetric, _NEW, {"at_most": at_most})}


def set_chosen(metrics: Collection[int]) -> None:
    """Record that predictors of *metrics* have been chosen."""
    execute(_SET_CHOSEN, {"metrics": list(metrics)})


def set_new(segments: Collection[int]) -> None:
    """Have predictors chosen again for the metrics of *segments*, to which their series returned."""
    execute(_SET_NEW, {"segments": list(segments)})
