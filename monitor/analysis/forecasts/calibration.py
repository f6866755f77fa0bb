"""Accuracy beyond the daily sums: calibration, the worst series, and errors by horizon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.score import ForecastRecord
from monitor.core.db import binary
from monitor.models.suite import VISIBLE, visibility

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.analysis.forecasts.scoreboard import ScoreFilter

MOST_SERIES = 2000  # whose records are read
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
_AT_SITE = """AND series.id IN (
    SELECT binding.series_id FROM monitor_binding AS binding
    JOIN monitor_resource AS resource ON resource.id = binding.resource_id
    JOIN monitor_site AS site ON site.id = resource.site_id WHERE site.name = %(site)b)"""
# ``OFFSET 0`` keeps the planner from joining whole tables: the limit ends the reading.
_RECORDS = f"""
SELECT series.name, metric.unit, state.record_n, state.mean_absolute_error, state.mean_absolute_scaled_error,
    state.less, state.most
FROM monitor_currentsegment AS stored
JOIN monitor_series AS series ON series.id = stored.series_id
CROSS JOIN LATERAL (
    SELECT id, unit FROM monitor_metric WHERE segment_id = stored.segment_id AND name = %(metric)b OFFSET 0
) AS metric
CROSS JOIN LATERAL (
    SELECT * FROM monitor_forecaststate
    WHERE metric_id = metric.id AND record_n > 0 AND cardinality(less) = %(levels)b OFFSET 0
) AS state
WHERE {VISIBLE} AT_SITE
LIMIT %(at_most)b
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
    AND forecast.method = %(method)b AND metric.name = %(metric)b AND {VISIBLE} AT_SITE
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


class SeriesRecord(NamedTuple):
    """The scores of the newest *n* forecasts of a series, at most 100; *less* and *most* as in
    ``ForecastState``."""

    name: str
    unit: str
    n: int
    mean_absolute_error: float | None
    scaled_error: float | None
    less: Sequence[int]
    most: Sequence[int]

    @property
    def coverage_80(self) -> float | None:
        return ForecastRecord(record_n=self.n, less=self.less, most=self.most).coverage(0.8)


def series_records(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> list[SeriesRecord]:
    """Return the records of the chosen metric of up to ``MOST_SERIES`` series, by the default method."""
    parameters = {"levels": len(QUANTILE_LEVELS), "at_most": MOST_SERIES, **_chosen(user, choice)}
    with binary.cursor() as cursor:
        rows = cursor.execute(_of_choice(_RECORDS, choice), parameters).fetchall()
    return [SeriesRecord(*row) for row in rows]


def calibration(records: Sequence[SeriesRecord]) -> list[CalibrationPoint]:
    """Return a point for each stored quantile. An actual value that equals the quantile counts half."""
    n = sum(record.n for record in records)
    return [
        CalibrationPoint(level, sum(record.less[at] + record.most[at] for record in records) / 2 / n, n)
        for at, level in enumerate(QUANTILE_LEVELS if n else ())
    ]


def worst_series(records: Sequence[SeriesRecord]) -> list[SeriesRecord]:
    """Return the series with the largest errors relative to the baseline, the largest first."""
    compared = [record for record in records if record.n >= LEAST_FORECASTS]
    return sorted(compared, key=lambda record: (-(record.scaled_error or 0.0), record.name))[:MOST_SHOWN]


def scores_by_horizon(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> list[HorizonScore]:
    """Return the scores of the newest forecasts by the time from their issue to the run."""
    bounds = [bound for bound, _ in HORIZONS if bound is not None]
    parameters = {
        "bounds": bounds,
        "newest": NEWEST_FORECASTS,
        "method": choice.method,
        **_chosen(user, choice),
    }
    with binary.cursor() as cursor:
        rows = cursor.execute(_of_choice(_HORIZONS, choice), parameters).fetchall()
    return [
        HorizonScore(HORIZONS[bucket][1], n, error / n, error / actual if actual else None, within / n)
        for bucket, n, error, actual, within in rows
    ]


def _of_choice(statement: str, choice: ScoreFilter) -> bytes:
    """Return *statement* with the condition of a site only if there is one: the planner begins there."""
    return statement.replace("AT_SITE", _AT_SITE if choice.site else "").encode()


def _chosen(user: AbstractBaseUser | AnonymousUser, choice: ScoreFilter) -> dict[str, object]:
    return {"metric": choice.metric, "site": choice.site, **visibility(user)}
