"""Look up stored forecasts that a user may see: one statement per answer, and one per ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import probes
from monitor.analysis.forecasts.basis import ForecastBasis
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.not_ready import NotReady
from monitor.analysis.forecasts.quantiles import neighbours
from monitor.analysis.forecasts.score import ForecastRecord
from monitor.analysis.forecasts.statements import fetch
from monitor.analysis.forecasts.success_state import SuccessEstimate
from monitor.depot.series.current_segment import MAX_SERIES, store_current_segments, store_missing_segments
from monitor.models.current_segment import SETUP
from monitor.models.hold import HoldKind
from monitor.models.reporter import HOME
from monitor.models.run import State
from monitor.models.suite import VISIBLE, visibility

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

By = Literal["series", "path", "resources"]

_FROM = """
FROM monitor_series AS series
JOIN monitor_reporter AS reporter ON reporter.id = series.reporter_id
LEFT JOIN monitor_currentsegment AS stored ON stored.series_id = series.id
LEFT JOIN monitor_segment AS segment ON segment.id = stored.segment_id
LEFT JOIN monitor_metric AS metric ON metric.segment_id = stored.segment_id AND metric.name = %(metric)b
LEFT JOIN monitor_forecaststate AS state ON state.metric_id = metric.id
LEFT JOIN monitor_forecast AS forecast ON forecast.id = {forecast}
LEFT JOIN monitor_forecastdelivery AS delivery ON delivery.forecast_id = forecast.id
LEFT JOIN monitor_successstate AS success ON success.series_id = series.id
"""
_COLUMNS = f"""series.id AS series, series.name, series.probe AS application,
    coalesce(stored.path, '') AS path, coalesce(stored.resources, '') AS resources,
    stored.segment_id IS NOT NULL AND stored.setup = {SETUP} AS is_current,
    coalesce(segment.probe_version, '') AS version, reporter.name = '{HOME}' AS is_home,
    forecast.id AS forecast, delivery.delivered_at, coalesce(forecast.n, state.n) AS n,
    forecast.mean, forecast.median, forecast.last_known_at AS known_until, state.stale_at,
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
# The forecast is the one that is given, else the current one. The state may have been reset since.
_ANSWER = f"""
SELECT {_COLUMNS}, {_IS_TROUBLED} AS is_troubled, metric.id AS metric, metric.unit, forecast.method,
    forecast.predictor, forecast.quantiles, forecast.issued_at, forecast.last_time,
    state.explanation::text AS explanation, coalesce(state.record_n, 0) AS record_n,
    state.mean_absolute_error, state.relative_error, state.mean_absolute_scaled_error, state.winkler_score,
    coalesce(state.less, '{{}}') AS less, coalesce(state.most, '{{}}') AS most,
    success.quantiles AS success_quantiles
{_FROM.format(forecast="coalesce(%(forecast)b::bigint, state.forecast_id)")}
WHERE series.name = %(series)b AND {VISIBLE}
"""
# The quantile that is asked for, interpolated as ``quantiles.quantile`` does.
_CANDIDATES = f"""
SELECT {_COLUMNS}, success.quantiles[%(left)b]
    + %(share)b * (success.quantiles[%(right)b] - success.quantiles[%(left)b]) AS seconds
{_FROM.format(forecast="state.forecast_id")} WHERE {VISIBLE} AND """
_BY: Mapping[By, str] = {
    "series": "series.name = ANY (%(asked)b)",
    "path": "series.probe = %(application)b AND stored.path = ANY (%(asked)b)",
    "resources": "series.probe = %(application)b AND stored.resources = ANY (%(asked)b)",
}


@dataclass(frozen=True, kw_only=True)
class StoredForecast:
    """The forecast of a metric of a *series* that runs *application* on *path*.

    Attributes:
        is_current: whether the stored path and segment are those of the next run.
        version: the version of the probe in the stored segment.
        is_home: whether the home reporter runs the series.
        mean: None while there are too few values.
        n: the number of values that the forecast was computed from.
        known_until: when the last of these values became known.
        delivered_at: when a delivery to a client was recorded last.
        success_n, success_probability, success_seconds: as in ``SuccessEstimate``.
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

    @property
    def is_settled(self) -> bool:
        """Return whether the stored path and segment are those of the next run, by the installed probe."""
        here = _version_here(self.application) if self.is_home else None
        return self.is_current and (here is None or here == self.version)


@dataclass(frozen=True, kw_only=True)
class RankCandidate(StoredForecast):
    """A stored forecast with a quantile of the time until a run has passed.

    *seconds* is the quantile at the requested probability. *basis* is that of a forecast from elsewhere.
    """

    seconds: float | None
    method: str = METHOD
    basis: ForecastBasis | None = None


@dataclass(frozen=True, kw_only=True)
class ForecastAnswer(StoredForecast, SuccessEstimate, ForecastRecord):
    """The content of an answer about a forecast, with the scores of the newest forecasts by the same method.

    Attributes:
        is_troubled: whether a hold, maintenance or failures may prevent runs.
        metric: None if the current segment has no metric of the requested name.
        explanation: the expected durations of the stages, as JSON; only forecasts of totals have it.
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


def look_up(
    user: AbstractBaseUser | AnonymousUser,
    series: str,
    metric: str,
    at: datetime,
    *,
    forecast: int | None = None,
) -> ForecastAnswer | None:
    """Return the answer about *metric* of *series* (names); None if *user* may see no such series.

    *forecast* is the key of a forecast, by default of the current forecast. ``is_troubled`` includes only
    maintenance that may be in progress at *at*.
    """
    names = {"series": series, "metric": metric, "at": at, "forecast": forecast}

    def read() -> ForecastAnswer | None:
        return next(iter(fetch(ForecastAnswer, _ANSWER, {**names, **visibility(user)})), None)

    answer = read()
    if answer is None or answer.is_settled:
        return answer
    store_current_segments([answer.series])
    return read()


def candidates(
    user: AbstractBaseUser | AnonymousUser,
    by: By,
    asked: Sequence[str],
    *,
    application: str,
    metric: str,
    probability: float,
) -> list[RankCandidate]:
    """Return a candidate for each series that *user* may see and that *asked* identifies.

    If *by* is ``series``, *asked* contains names of series. Otherwise *asked* contains the ``path`` or the
    ``resources`` of series of *application*, as in ``CurrentSegment``. A candidate has the forecast of
    *metric*, and the quantile at *probability* of the time until a run has passed.

    Raises:
        NotReady: the application has thousands of new series, whose paths are not stored yet.
    """
    left, right, share = neighbours(probability)
    names = {"asked": list(asked), "application": application, "metric": metric}
    places = {"left": left + 1, "right": right + 1, "share": share}

    def read() -> list[RankCandidate]:
        return fetch(RankCandidate, _CANDIDATES + _BY[by], {**names, **places, **visibility(user)})

    if by != "series" and store_missing_segments(application) == MAX_SERIES:
        raise NotReady(f"the paths of the series of {application} are being stored")
    found = read()
    outdated = [candidate.series for candidate in found if not candidate.is_settled]
    if not outdated:
        return found
    store_current_segments(outdated)
    return read()


def _version_here(application: str) -> str | None:
    try:
        return probes.load(application).version
    except Exception:  # noqa: BLE001  # no such probe, or its file is broken: each of its runs reports that
        return None
