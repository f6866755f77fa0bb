"""Which metrics are followed (kept forecast at all times), and which other metrics they use as predictors."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from monitor.forecasts.statements import fetch

# Metrics with other names are followed from the first question about them on.
FOLLOWED_BY_DEFAULT = r"^(total|total_essential|total_core|stage\..*)\.seconds$"

_FOLLOWED = f"""
SELECT metric.id AS key, metric.name, metric.unit, segment.id AS segment, segment.began_at,
    series.id AS series, series.name AS series_name
FROM monitor_segment AS segment
JOIN monitor_series AS series ON series.id = segment.series_id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
WHERE {{which}} = ANY (%(keys)b::bigint[]) AND (metric.name ~ '{FOLLOWED_BY_DEFAULT}'
    OR EXISTS (SELECT FROM monitor_forecaststate WHERE metric_id = metric.id)
) ORDER BY metric.id
"""  # noqa: S608  # constants of this module
_PREDICTED_BY = """
SELECT DISTINCT metric_id AS metric, series_id AS series FROM monitor_forecastpredictor
WHERE series_id = ANY (%(series)b::bigint[])
"""
_PREDICTORS = """
SELECT predictor.metric_id AS metric, other.id AS other, series.name AS series_name, other.name
FROM monitor_forecastpredictor AS predictor
JOIN monitor_series AS series ON series.id = predictor.series_id
JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_metric AS other ON other.segment_id = segment.id AND other.name = predictor.name
WHERE predictor.metric_id = ANY (%(metrics)b::bigint[]) ORDER BY predictor.id, other.id
"""


class FollowedMetric(NamedTuple):
    """A metric that is followed, or will be; *segment* and *series* are keys."""

    key: int
    name: str
    unit: str
    segment: int
    began_at: datetime
    series: int
    series_name: str


class PredictedMetric(NamedTuple):
    """A metric that has a predictor in *series*."""

    metric: int
    series: int


class PredictorMetric(NamedTuple):
    """The metric *other* (its key), *name* of *series_name*, which *metric* uses as predictor."""

    metric: int
    other: int
    series_name: str
    name: str


def of_series(series: Collection[int]) -> list[FollowedMetric]:
    """Return all followed metrics of these series (their keys)."""
    return fetch(FollowedMetric, _FOLLOWED.format(which="series.id"), {"keys": list(series)})


def of_metrics(metrics: Collection[int]) -> list[FollowedMetric]:
    """Return those of *metrics* (their keys) that are followed."""
    return fetch(FollowedMetric, _FOLLOWED.format(which="metric.id"), {"keys": list(metrics)})


def predicted_by(series: Collection[int]) -> list[PredictedMetric]:
    """Return the metrics, of any series, that have predictors in *series*."""
    return fetch(PredictedMetric, _PREDICTED_BY, {"series": list(series)})


def predictors(metrics: Collection[int]) -> list[PredictorMetric]:
    """Return the predictors of *metrics*: of each named series, its metrics in every segment."""
    return fetch(PredictorMetric, _PREDICTORS, {"metrics": list(metrics)})
