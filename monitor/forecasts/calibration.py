"""Accuracy beyond the daily sums: calibration, the worst series, and errors by horizon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import F

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.db import binary
from monitor.forecasts.score import ForecastRecord
from monitor.models import Binding, CurrentSegment, ForecastState, Series
from monitor.models.series import VISIBLE, visibility
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet

    from monitor.forecasts.scoreboard import ScoreFilter

MOST_SERIES = 2000  # of which calibration is computed
MOST_SHOWN = 25
LEAST_FORECASTS = 10  # of a series that is listed
NEWEST_FORECASTS = 20_000  # among which those of the chosen metric and method are scored by horizon
HORIZONS = (
    (timedelta(minutes=15), "up to 15 min"),
    (timedelta(hours=1), "15 min to 1 h"),
    (timedelta(hours=6), "1 to 6 h"),
    (timedelta(days=1), "6 h to 1 d"),
    (None, "more than 1 d"),
)
_CALIBRATION = f"""
SELECT counted.level, sum(record.record_n), sum(counted.less), sum(counted.most)
FROM (
    SELECT state.record_n, state.less, state.most
    FROM monitor_forecaststate AS state
    JOIN monitor_metric AS metric ON metric.id = state.metric_id
    JOIN monitor_currentsegment AS stored ON stored.segment_id = metric.segment_id
    JOIN monitor_series AS series ON series.id = stored.series_id
    WHERE metric.name = %(metric)b AND state.record_n > 0 AND cardinality(state.less) = %(levels)b
        AND {VISIBLE}
        AND (%(site)b = '' OR EXISTS (
            SELECT FROM monitor_binding AS binding
            JOIN monitor_resource AS resource ON resource.id = binding.resource_id
            JOIN monitor_site AS site ON site.id = resource.site_id
            WHERE binding.series_id = series.id AND site.name = %(site)b))
    LIMIT %(at_most)b
) AS record, unnest(less, most) WITH ORDINALITY AS counted (less, most, level)
GROUP BY 1 ORDER BY 1
"""  # noqa: S608  # constants
_HORIZONS = f"""
SELECT width_bucket(forecast.truth_time - forecast.issued_at, %(bounds)b::interval[]), count(*),
    sum(least(abs(forecast.truth - forecast.median), 1e290)), sum(least(abs(forecast.truth), 1e290)),
    count(*) FILTER (WHERE forecast.truth BETWEEN forecast.lower AND forecast.upper)
FROM monitor_forecast AS forecast
JOIN monitor_metric AS metric ON metric.id = forecast.metric_id
JOIN monitor_segment AS segment ON segment.id = metric.segment_id
JOIN monitor_series AS series ON series.id = segment.series_id
WHERE forecast.id > (SELECT max(id) - %(newest)b FROM monitor_forecast) AND forecast.truth IS NOT NULL
    AND forecast.method = %(method)b AND metric.name = %(metric)b AND {VISIBLE}
    AND (%(site)b = '' OR EXISTS (
        SELECT FROM monitor_binding AS binding
        JOIN monitor_resource AS resource ON resource.id = binding.resource_id
        JOIN monitor_site AS site ON site.id = resource.site_id
        WHERE binding.series_id = series.id AND site.name = %(site)b))
GROUP BY 1 ORDER BY 1
"""  # noqa: S608  # constants


class CalibrationPoint(NamedTuple):
    """The quantile at *level* was at or above the share *observed* of the actual values."""

    level: float
    observed: float
    n: int


@dataclass(frozen=True)
class HorizonScore:
    """The score of *n* forecasts that were issued a *label* before the run; *relative_error*: of the sums."""

    label: str
    n: int
    mean_absolute_error: float
    relative_error: float | None
    coverage_80: float


@dataclass(frozen=True)
class SeriesScore:
    """The scores of the newest *n* forecasts of a series, at most 100."""

    name: str
    unit: str
    n: int
    mean_absolute_error: float
    scaled_error: float | None
    coverage_80: float | None


def calibration(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> list[CalibrationPoint]:
    """Return a point for each stored quantile, over the newest forecasts of up to ``MOST_SERIES`` series.

    An actual value that equals the quantile counts half.
    """
    parameters = {"levels": len(QUANTILE_LEVELS), "at_most": MOST_SERIES, **_chosen(user, choice)}
    with binary.cursor() as cursor:
        rows = cursor.execute(_CALIBRATION, parameters).fetchall()
    return [
        CalibrationPoint(level, (less + most) / 2 / n, n)
        for level, (_, n, less, most) in zip(QUANTILE_LEVELS, rows, strict=bool(rows))
    ]


def scores_by_horizon(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> list[HorizonScore]:
    """Return the scores of the newest forecasts by the time from their issue to the run."""
    bounds = [timedelta(), *(bound for bound, _ in HORIZONS if bound is not None)]
    parameters = {
        "bounds": bounds,
        "newest": NEWEST_FORECASTS,
        "method": choice.method,
        **_chosen(user, choice),
    }
    with binary.cursor() as cursor:
        rows = cursor.execute(_HORIZONS, parameters).fetchall()
    return [
        HorizonScore(
            HORIZONS[max(bucket - 1, 0)][1], n, error / n, error / actual if actual else None, within / n
        )
        for bucket, n, error, actual, within in rows
    ]


def worst_series(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> list[SeriesScore]:
    """Return the series with the largest errors relative to the baseline, the largest first."""
    segments = CurrentSegment.objects.all()
    if choice.site:
        at_site = Binding.objects.filter(resource__site__name=choice.site).order_by().values("series")
        segments = segments.filter(series__in=at_site)
    if not sees_all(user):
        segments = segments.filter(series__in=Series.objects.visible_to(user).order_by().values("pk"))
    states = ForecastState.objects.filter(
        metric__segment__in=segments.order_by().values("segment"),
        metric__name=choice.metric,
        record_n__gte=LEAST_FORECASTS,
    )
    return [_series_score(state) for state in _worst(states)]


def _worst(states: QuerySet[ForecastState]) -> Sequence[ForecastState]:
    keys = states.order_by(F("mean_absolute_scaled_error").desc(nulls_last=True), "pk").values("pk")[
        :MOST_SHOWN
    ]
    found = ForecastState.objects.filter(pk__in=list(keys.values_list("pk", flat=True)))
    found = found.select_related("metric__segment__series").defer("state", "explanation")
    return sorted(found, key=lambda state: -(state.mean_absolute_scaled_error or 0.0))


def _series_score(state: ForecastState) -> SeriesScore:
    record = ForecastRecord(record_n=state.record_n, less=state.less, most=state.most)
    return SeriesScore(
        state.metric.segment.series.name,
        state.metric.unit,
        state.record_n,
        state.mean_absolute_error or 0.0,
        state.mean_absolute_scaled_error,
        record.coverage(0.8),
    )


def _chosen(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> dict[str, object]:
    return {"metric": choice.metric, "site": choice.site, **visibility(user)}
