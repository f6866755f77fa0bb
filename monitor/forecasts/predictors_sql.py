"""Which metrics listen to which others, how well that helps, and of which that has not been chosen yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from monitor.db import binary

_PREDICTED = "SELECT metric_id FROM monitor_forecastpredictor WHERE series_id = ANY (%b::bigint[])"
_PREDICTORS = """
SELECT predictor.metric_id, metric.id, series.name, metric.name, series.id
FROM monitor_forecastpredictor AS predictor
JOIN monitor_series AS series ON series.id = predictor.series_id
JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id AND metric.name = predictor.name
WHERE predictor.metric_id = ANY (%b::bigint[]) ORDER BY predictor.id, metric.id
"""
_TELL = """
UPDATE monitor_forecastpredictor AS predictor
SET n = %(n)b, gain = %(gain)b, p_value = %(p_value)b, is_kept = %(is_kept)b
FROM monitor_series AS series
WHERE predictor.metric_id = %(metric)b AND series.id = predictor.series_id
    AND series.name = %(series)b AND predictor.name = %(name)b
"""
_NEW = """
SELECT state.metric_id, segment.series_id
FROM (SELECT metric_id FROM monitor_forecaststate WHERE is_new ORDER BY metric_id LIMIT %b) AS state
JOIN monitor_metric AS metric ON metric.id = state.metric_id
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
"""
# In the order in which others lock them.
_LOOKED_AT = """
UPDATE monitor_forecaststate SET is_new = false WHERE metric_id = ANY (ARRAY(
    SELECT metric_id FROM monitor_forecaststate WHERE metric_id = ANY (%b::bigint[])
    ORDER BY metric_id FOR UPDATE))
"""
_LOOK_AGAIN = """
UPDATE monitor_forecaststate SET is_new = true WHERE metric_id = ANY (ARRAY(
    SELECT metric_id FROM monitor_forecaststate AS state
    JOIN monitor_metric AS metric ON metric.id = metric_id
    WHERE segment_id = ANY (%b::bigint[]) AND NOT is_new ORDER BY metric_id FOR UPDATE OF state))
"""
_LISTEN = """
INSERT INTO monitor_forecastpredictor (metric_id, series_id, name, n)
SELECT %(metric)b, series.id, chosen.name, 0
FROM unnest(%(series)b::bigint[], %(names)b::text[]) WITH ORDINALITY AS chosen (series, name, place)
JOIN monitor_series AS series ON series.id = chosen.series
ORDER BY place FOR KEY SHARE OF series
"""


class Heard(NamedTuple):
    """A metric, and another one (*heard*, of *series_name*, whose key is *series*) that it listens to."""

    metric: int
    heard: int
    series_name: str
    name: str
    series: int


def tell_predictors(rows: Iterable[dict[str, Any]]) -> None:
    """Keep how well predictors help."""
    with binary.cursor() as cursor:
        cursor.executemany(_TELL, rows)


def predicted_by(series: Collection[int]) -> list[int]:
    """The metrics, of whichever series, that listen to one of *series*."""
    with binary.cursor() as cursor:
        return [metric for (metric,) in cursor.execute(_PREDICTED, [list(series)])]


def predictors(metrics: Collection[int]) -> list[Heard]:
    """Which metrics of other series each of *metrics* listens to."""
    with binary.cursor() as cursor:
        return [Heard(*row) for row in cursor.execute(_PREDICTORS, [list(metrics)])]


def listen(metric: int, chosen: Sequence[tuple[int, str]]) -> None:
    """Let *metric*, whose row the caller has locked, listen to metrics of these names of these series (their
    keys), those that there are, and to no others."""
    series, names = zip(*chosen, strict=True) if chosen else ((), ())
    with binary.cursor() as cursor:
        cursor.execute("DELETE FROM monitor_forecastpredictor WHERE metric_id = %b", [metric])
        cursor.execute(_LISTEN, {"metric": metric, "series": list(series), "names": list(names)})


def new(at_most: int) -> dict[int, int]:
    """Metrics that are followed, and of which nobody has looked at who listens to whom, with their series."""
    with binary.cursor() as cursor:
        return dict(cursor.execute(_NEW, [at_most]).fetchall())


def looked_at(metrics: Collection[int]) -> None:
    """They are no longer new."""
    with binary.cursor() as cursor:
        cursor.execute(_LOOKED_AT, [list(metrics)])


def look_again(segments: Collection[int]) -> None:
    """Let the metrics of these segments, to which their series have gone back, be as new."""
    with binary.cursor() as cursor:
        cursor.execute(_LOOK_AGAIN, [list(segments)])
