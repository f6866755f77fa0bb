"""Forecasts: how long will it take, how sure is that, and how good were the answers before?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import AwareDatetime

import forecasting.methods
from forecasting.base import UnknownMethod
from forecasting.uncertainty.intervals import lower_tail
from monitor.api.answers import answer
from monitor.api.lookup import in_utc
from monitor.api.paths import Total, checked, metric_of, path, together
from monitor.api.problems import Refused
from monitor.forecasts import query as service
from monitor.forecasts.defaults import METHOD
from monitor.forecasts.lookup import candidates
from monitor.forecasts.lookup_sql import ForecastAnswer
from monitor.forecasts.quantiles import HIGHEST, LOWEST, quantile
from monitor.forecasts.query import ForecastQuestion, NoAnswer, UnknownMetric, UnknownSeries

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

LEVEL = 0.8
MOST_QUANTILES = 50
MOST_SECONDS = 366 * 86_400.0
_NAMED = {
    *("series", "application", "resources", "metric", "stage", "total", "method", "level"),
    *("quantiles", "at", "horizon", "max_age"),
}

router = Router()


class Interval(Schema):
    level: float
    lower: float
    upper: float


class TrackRecord(Schema):
    """Of the newest forecasts of the metric by the method that have met their truth, at most 100.
    *mean_absolute_scaled_error*: against who always says the last value; *coverage*: of the interval;
    *winkler_score*: of the one of 80 %."""

    n: int
    level: float
    mean_absolute_error: float | None
    relative_error: float | None
    mean_absolute_scaled_error: float | None
    coverage: float | None
    winkler_score: float | None


class Success(Schema):
    """From *n* runs that passed or did not: how *probable* it is that the next one passes. Until one has,
    begun anew after each that did not, it takes *expected_seconds*, or *quantiles*."""

    n: int
    probability: float
    expected_seconds: float | None
    quantiles: dict[str, float] | None


class StageForecast(Schema):
    metric: str
    mean: float | None
    median: float | None
    method: str
    predictor: str


class Forecast(Schema):
    """*forecast* is its number, for those who tell what became of it. *quantiles*: by probability, the value
    that is undercut with it. *predictor*: what else than the metric's own values it was made from."""

    forecast: int
    series: str
    metric: str
    unit: str
    method: str
    predictor: str
    mean: float
    median: float
    interval: Interval
    quantiles: dict[str, float]
    n: int
    at: datetime
    issued_at: datetime
    data_until: datetime
    data_age_seconds: float
    success: Success | None
    track_record: TrackRecord
    stages: list[StageForecast]


@router.get("", response=Forecast, summary="Forecast the next value of a metric")
def forecast(
    request: HttpRequest,
    series: str = "",
    application: str = "",
    resources: str = "",
    metric: str = "",
    stage: str = "",
    total: Total | None = None,
    method: str = METHOD,
    level: Annotated[float, Query(ge=0.5, le=0.99)] = LEVEL,
    quantiles: str = "0.5,0.9,0.95",
    at: AwareDatetime | None = None,
    horizon: Annotated[float, Query(ge=0, le=MOST_SECONDS)] | None = None,
    max_age: Annotated[float, Query(ge=0, le=MOST_SECONDS)] | None = None,
) -> HttpResponse:
    """What the next run of *series* will show in a *metric*, a *stage*, or a *total* (i: all, ii: without
    setup and cleanup, iii: without queue as well), with the interval in which it lies with probability
    *level*, how likely it passes, and the track record of such forecasts. Instead of a series, an
    *application* (a probe) and its path: each role is a parameter with its resources
    (``compute=beta&sources=alpha,gamma``), or all *resources* in whatever roles. *at* some time, or as many
    seconds ahead as *horizon* says. Only runs that did what the next one will do count: those of the current
    segment. Abstains (409) with the reason: ``too_few``, ``segment_changed``, ``stale`` (by itself, or older
    than *max_age* seconds), ``site_down``, ``past``."""
    wanted = metric_of(metric, stage, total)
    now = timezone.now()
    asked = ForecastQuestion(
        series=_series(request, series, application, resources, wanted),
        metric=checked(wanted),
        method=method,
        at=time_asked(at, horizon, now),
        max_age=None if max_age is None else timedelta(seconds=max_age),
    )
    probabilities = _probabilities(quantiles)
    said = _foretold(request, asked, now)
    return answer(_shown(asked, said, round(level, 2), probabilities, now))


def time_asked(at: datetime | None, horizon: float | None, now: datetime) -> datetime | None:
    """When the run is to start that is meant; None: now."""
    if at is not None and horizon is not None:
        raise Refused(422, "invalid", "expected one of at and horizon, got both")
    if horizon is not None:
        if not 0 <= horizon <= MOST_SECONDS:
            raise Refused(422, "invalid", f"horizon: expected 0 to {MOST_SECONDS:.0f} seconds, got {horizon}")
        return now + timedelta(seconds=horizon)
    time = in_utc("at", at)
    if time is not None and (time - now).total_seconds() > MOST_SECONDS:
        raise Refused(422, "invalid", f"at: expected a time within a year, got {time.isoformat()}")
    return time


def _foretold(request: HttpRequest, asked: ForecastQuestion, now: datetime) -> ForecastAnswer:
    try:
        return service.answer_question(request.user, asked, now)
    except UnknownSeries as error:
        said = f"there is no series {asked.series!r} that you may see"
        raise Refused(404, "unknown_series", said) from error
    except UnknownMetric as error:
        said = f"series {asked.series!r} has no metric {asked.metric!r}"
        raise Refused(404, "unknown_metric", said, known=list(error.known)) from error
    except UnknownMethod as error:
        raise Refused(422, "unknown_method", str(error), known=forecasting.methods.names()) from error
    except NoAnswer as error:
        said = f"no forecast of {asked.metric} of {asked.series}: {error}"
        extra: dict[str, Any] = {"down": dict(error.down)} if error.down else {}
        raise Refused(409, error.code, said, changed=list(error.changed), **extra) from error


def _series(request: HttpRequest, series: str, application: str, resources: str, metric: str) -> str:
    """The name of the series that is meant."""
    roles = {name: str(given) for name, given in request.GET.items() if name not in _NAMED}
    if bool(series) == bool(application):
        raise Refused(422, "invalid", "expected either series, or application and its path")
    if series and (roles or resources):
        said = ", ".join(sorted(roles) or ["resources"])[:100]
        raise Refused(422, "invalid", f"expected nothing of a path beside series, got {said}")
    if series:
        return checked(series)
    if bool(roles) == bool(resources):
        raise Refused(422, "invalid", "expected either roles with their resources, or resources")
    by = "path" if roles else "resources"
    wanted = (
        path({role: given.split(",") for role, given in roles.items()})
        if roles
        else together(resources.split(","))
    )
    found = candidates(
        request.user, by, [wanted], application=checked(application), metric=metric, probability=0.5
    )
    names = sorted(one.name for one in found)
    if not names:
        said = f"there is no series of {application!r} on {wanted} that you may see"
        raise Refused(404, "unknown_path", said)
    if len(names) > 1:
        said = f"{len(names)} series of {application!r} are on {wanted}: name one, as series"
        raise Refused(409, "ambiguous", said, known=names)
    return names[0]


def _probabilities(said: str) -> list[float]:
    try:
        found = [float(one) for one in said.split(",") if one.strip()]
    except ValueError:
        found = [0.0]
    if len(found) > MOST_QUANTILES or not all(LOWEST <= one <= HIGHEST for one in found):
        expected = f"expected at most {MOST_QUANTILES} numbers from {LOWEST} to {HIGHEST}"
        raise Refused(422, "invalid", f"quantiles: {expected}, separated by commas, got {said[:100]!r}")
    return found


def _shown(
    asked: ForecastQuestion, said: ForecastAnswer, level: float, probabilities: Sequence[float], now: datetime
) -> dict[str, Any]:
    """As ``Forecast``."""
    tail = lower_tail(level)
    said_quantiles = said.quantiles or ()
    return {
        "forecast": said.forecast,
        "series": asked.series,
        "metric": asked.metric,
        "unit": said.unit,
        "method": said.method,
        "predictor": said.predictor,
        "mean": said.mean,
        "median": said.median,
        "interval": {
            "level": level,
            "lower": quantile(said_quantiles, tail),
            "upper": quantile(said_quantiles, 1.0 - tail),
        },
        "quantiles": _quantiles(said_quantiles, probabilities),
        "n": said.n,
        "at": max(asked.at or now, now),
        "issued_at": said.issued_at,
        "data_until": said.last_time,
        "data_age_seconds": max((now - (said.known_until or now)).total_seconds(), 0.0),
        "success": _success(said, probabilities),
        "track_record": {
            "n": said.record_n,
            "level": level,
            "mean_absolute_error": said.mean_absolute_error,
            "relative_error": said.relative_error,
            "mean_absolute_scaled_error": said.mean_absolute_scaled_error,
            "coverage": said.coverage(level),
            "winkler_score": said.winkler_score,
        },
        "stages": msgspec.Raw((said.explanation or "[]").encode()),
    }


def _success(said: ForecastAnswer, probabilities: Sequence[float]) -> dict[str, Any] | None:
    success = said.success
    if success is None:
        return None
    return {
        "n": success.n,
        "probability": success.probability,
        "expected_seconds": success.expected_seconds,
        "quantiles": _quantiles(success.quantiles, probabilities) if success.quantiles else None,
    }


def _quantiles(of_grid: Sequence[float], probabilities: Sequence[float]) -> dict[str, float]:
    return {repr(one): quantile(of_grid, one) for one in probabilities}
