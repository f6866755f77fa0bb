"""Read stored forecasts: everything that one answer needs in one statement, and a ranking in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from monitor.forecasts.quantiles import neighbours
from monitor.forecasts.score import ForecastRecord
from monitor.forecasts.statements import fetch
from monitor.forecasts.success_state import SuccessEstimate
from monitor.models.current_segment import SETUP
from monitor.models.hold import HoldKind
from monitor.models.reporter import HOME
from monitor.models.run import State
from monitor.models.series import VISIBLE

# Columns of the answer come from the forecast, not from the state, which may have been reset since.
_FROM = """
FROM monitor_series AS series
JOIN monitor_reporter AS reporter ON reporter.id = series.reporter_id
LEFT JOIN monitor_currentsegment AS stored ON stored.series_id = series.id
LEFT JOIN monitor_segment AS segment ON segment.id = stored.segment_id
LEFT JOIN monitor_metric AS metric ON metric.segment_id = stored.segment_id AND metric.name = %(metric)b
LEFT JOIN monitor_forecaststate AS state ON state.metric_id = metric.id
LEFT JOIN monitor_forecast AS forecast ON forecast.id = state.forecast_id
LEFT JOIN monitor_forecastdelivery AS delivery ON delivery.forecast_id = state.forecast_id
LEFT JOIN monitor_successstate AS success ON success.series_id = series.id
"""
_COLUMNS = f"""series.id AS series, series.name, series.probe AS application,
    coalesce(stored.path, '') AS path, coalesce(stored.resources, '') AS resources,
    stored.segment_id IS NOT NULL AND stored.setup = {SETUP} AS is_current,
    coalesce(segment.probe_version, '') AS version, reporter.name = '{HOME}' AS is_home,
    state.forecast_id AS forecast, delivery.delivered_at, coalesce(forecast.n, state.n) AS n,
    state.mean, state.median, forecast.last_known_at AS known_until, state.stale_at,
    success.n AS success_n, success.probability AS success_probability,
    success.expected_seconds AS success_seconds"""
# Whether a hold, a maintenance window or failures may prevent runs; which, is queried only then.
_IS_TROUBLED = f"""(
    EXISTS (SELECT FROM monitor_latestrun AS latest WHERE latest.series_id = series.id
        AND latest.failed_resource <> '' AND latest.state IN ('{State.FAILED}', '{State.TIMED_OUT}'))
    OR EXISTS (SELECT FROM monitor_hold WHERE ended_at IS NULL AND kind = '{HoldKind.SITE}')
    OR EXISTS (SELECT FROM monitor_maintenancewindow AS window_
        WHERE (window_.schedule <> '' OR window_.ends_at > %(at)b AND window_.starts_at <= %(at)b)
        AND (NOT EXISTS (SELECT FROM monitor_maintenancewindow_sites WHERE maintenancewindow_id = window_.id)
            OR EXISTS (SELECT FROM monitor_maintenancewindow_sites AS closed
                JOIN monitor_resource AS resource USING (site_id)
                JOIN monitor_binding AS bound ON bound.resource_id = resource.id
                WHERE closed.maintenancewindow_id = window_.id AND bound.series_id = series.id))))"""  # noqa: S608
_ANSWER = f"""
SELECT {_COLUMNS}, {_IS_TROUBLED} AS is_troubled, metric.id AS metric, metric.unit, state.method,
    state.predictor, state.quantiles, state.issued_at, forecast.last_time,
    state.explanation::text AS explanation, coalesce(state.record_n, 0) AS record_n,
    state.mean_absolute_error, state.relative_error, state.mean_absolute_scaled_error, state.winkler_score,
    coalesce(state.less, '{{}}') AS less, coalesce(state.most, '{{}}') AS most,
    success.quantiles AS success_quantiles
{_FROM} WHERE series.name = %(series)b AND {VISIBLE}
"""
# The quantile that is asked for, interpolated as ``quantiles.quantile`` does.
_CANDIDATES = f"""
SELECT {_COLUMNS}, success.quantiles[%(left)b]
    + %(share)b * (success.quantiles[%(right)b] - success.quantiles[%(left)b]) AS seconds
{_FROM} WHERE {VISIBLE} AND """
_BY = {
    "series": "series.name = ANY (%(asked)b)",
    "path": "series.probe = %(application)b AND stored.path = ANY (%(asked)b)",
    "resources": "series.probe = %(application)b AND stored.resources = ANY (%(asked)b)",
}


@dataclass(frozen=True, kw_only=True)
class StoredForecast:
    """The forecast of a metric of a *series* that runs *application* on *path*.

    *is_current*: the stored path and segment are those of the next run. *mean* is None while there are too
    few values. *n* and *known_until* describe the values that the forecast was made from, *success_...* how
    likely the next run passes and how long it takes until one has passed; *delivered_at* is when a delivery
    to a client was recorded last.
    """

    series: int
    name: str
    application: str
    path: str
    resources: str
    is_current: bool
    version: str
    is_home: bool
    forecast: int | None
    delivered_at: datetime | None
    n: int | None
    mean: float | None
    median: float | None
    known_until: datetime | None
    stale_at: datetime | None
    success_n: int | None
    success_probability: float | None
    success_seconds: float | None

    @property
    def resource_names(self) -> list[str]:
        return [name for name in self.resources.split(",") if name]


@dataclass(frozen=True, kw_only=True)
class RankCandidate(StoredForecast):
    """*seconds* is the quantile that was asked for of the time until a run has passed."""

    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class ForecastAnswer(StoredForecast, ForecastRecord):
    """All that is served about a forecast; its record is that of the newest forecasts by the same method.

    *metric* is None where the current segment has no metric of that name. *explanation*, of a total, is JSON:
    how long its stages are expected to take. *is_troubled*: something may prevent runs.
    """

    is_troubled: bool
    metric: int | None
    unit: str | None
    method: str | None
    predictor: str | None
    quantiles: Sequence[float] | None
    issued_at: datetime | None
    last_time: datetime | None
    explanation: str | None
    success_quantiles: Sequence[float] | None

    @property
    def success(self) -> SuccessEstimate | None:
        if self.success_n is None or self.success_probability is None:
            return None
        return SuccessEstimate(
            self.success_n, self.success_probability, self.success_seconds, self.success_quantiles
        )


def read_answer(
    series: str, metric: str, at: datetime, visibility: Mapping[str, object]
) -> ForecastAnswer | None:
    """Return the forecast of *metric* of the series of that name, or None if there is no visible one.

    Maintenance that is over at *at*, or has not begun then, is no trouble.
    """
    rows = fetch(ForecastAnswer, _ANSWER, {"series": series, "metric": metric, "at": at, **visibility})
    return rows[0] if rows else None


def read_candidates(
    by: str,
    asked: Sequence[str],
    *,
    application: str,
    metric: str,
    probability: float,
    visibility: Mapping[str, object],
) -> list[RankCandidate]:
    """Return the visible series *asked* for *by* ``series`` name, or by ``path`` or ``resources``."""
    left, right, share = neighbours(probability)
    places = {"left": left + 1, "right": right + 1, "share": share}
    parameters = {"asked": list(asked), "application": application, "metric": metric, **places, **visibility}
    return fetch(RankCandidate, _CANDIDATES + _BY[by], parameters)
