"""Forecasts with their intervals and track records."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from django.conf import settings
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

import forecasting.methods
from forecasting.base import UnknownMethod
from forecasting.uncertainty.intervals import lower_tail
from monitor.analysis.forecasts import query as service
from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.lookup import By, ForecastAnswer, candidates
from monitor.analysis.forecasts.quantiles import HIGHEST, LOWEST, quantile
from monitor.analysis.forecasts.query import ForecastQuestion, NoAnswer, UnknownMetric, UnknownSeries
from monitor.models.natural_order import sort_name
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.prefer import PARAMETER, WAITING
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.query_names import (
    ROLE,
    RoleTexts,
    Total,
    metric_of,
    path,
    resource_set,
    resources_by_role,
    roles_of,
)
from monitor.web.api.http.schemas import NameFilter, Time
from monitor.web.api.http.start_time import Horizon, start_time

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

LEVEL = 0.8
MOST_QUANTILES = 50
MOST_CHARACTERS = 10_000

router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)


class Interval(Schema):
    level: float
    lower: float
    upper: float


class TrackRecord(Schema):
    """Scores of the newest forecasts (at most 100) of this metric by this method; each forecast is compared
    with the value of the next run. *mean_absolute_scaled_error* is relative to the baseline (last value).
    *coverage* is the share of values inside the interval of probability *level*. *winkler_score* is the
    Winkler score of the 80 % interval."""

    n: int
    level: float
    mean_absolute_error: float | None
    relative_error: float | None
    mean_absolute_scaled_error: float | None
    coverage: float | None
    winkler_score: float | None


class Success(Schema):
    """The *probability* that the next run passes, estimated from *n* runs. *expected_seconds* is the mean
    time until a run has passed if each failed run is retried at once; *quantiles* maps probabilities to
    quantiles of this time."""

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


class ForecastOut(Schema):
    """A forecast; with its *id* a client reports the outcome of its job."""

    id: int
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


class ForecastQuery(Sparse):
    series: NameFilter = ""
    application: NameFilter = ""
    role: RoleTexts = Field([], description=ROLE)
    resources: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    metric: NameFilter = ""
    stage: NameFilter = ""
    total: Total | None = None
    method: NameFilter = METHOD
    level: Annotated[float, Field(ge=0.5, le=0.99)] = LEVEL
    quantiles: Annotated[str, Field(max_length=MOST_CHARACTERS)] = "0.5,0.9,0.95"
    at: Time | None = None
    horizon_seconds: Horizon | None = None
    max_age_seconds: Horizon | None = None


@router.get(
    "/forecasts",
    response=ForecastOut,
    operation_id="show_forecast",
    openapi_extra=declare(
        errors={
            404: ["unknown_metric", "unknown_path", "unknown_series"],
            409: ["ambiguous", "past", "segment_changed", "site_down", "stale", "too_few"],
            422: ["unknown_method"],
            503: ["not_ready"],
        },
        parameters=[PARAMETER],
    ),
    summary="Forecast the next value of a metric",
)
def show_forecast(request: HttpRequest, query: Query[ForecastQuery]) -> HttpResponse:
    """Forecast the next value of a *metric*, a *stage* or a *total* of *series*. The answer has point
    forecasts, the interval of probability *level*, the probability that the run passes, and the track record
    of such forecasts. Instead of a series, give an *application* and its path: a parameter *role* for each
    role (``role=compute:beta&role=sources:alpha,gamma``), or all *resources*, whatever their roles. Only runs
    of the current segment are used. Without a forecast, the answer is 409 with a code: ``too_few``,
    ``segment_changed``, ``stale`` (also if the newest value is older than *max_age_seconds*), ``site_down``
    or ``past``. A first forecast from many values is computed in the background: 503 ``not_ready``, with
    Retry-After, or the forecast itself if ``Prefer: wait=5`` asks to wait and it is ready by then."""
    metric = metric_of(query.metric, query.stage, query.total)
    now = timezone.now()
    question = ForecastQuestion(
        series=_series(request, query, metric),
        metric=metric,
        method=query.method,
        at=start_time(query.at, query.horizon_seconds, now),
        max_age=None if query.max_age_seconds is None else timedelta(seconds=query.max_age_seconds),
    )
    probabilities = _probabilities(query.quantiles)
    answer = WAITING.answer(request, lambda seconds: _query(request, question, now, seconds))
    fields = _forecast_fields(question, answer, round(query.level, 2), probabilities, now)
    response = show_item(query, fields, ForecastOut)
    response["ETag"] = _tag(answer, fields)
    return response


def _tag(answer: ForecastAnswer, fields: Mapping[str, Any]) -> str:
    """Return the entity tag: the number of the forecast, and what other runs change beside it."""
    beside = msgspec.json.encode([fields["success"], fields["track_record"], fields["quantiles"]])
    return f'W/"{answer.forecast}-{zlib.crc32(beside):08x}"'


def _query(
    request: HttpRequest, question: ForecastQuestion, now: datetime, within_seconds: float | None
) -> ForecastAnswer:
    """Return the requested forecast, computed within the time. Raises Refused if none can be trusted."""
    try:
        budget = settings.GRIDCAST_FORECAST_SECONDS if within_seconds is None else within_seconds
        return service.answer_question(request.user, question, now, within_seconds=budget)
    except UnknownSeries as error:
        detail = f"there is no series {question.series!r} that you may see"
        raise Refused(404, "unknown_series", detail) from error
    except UnknownMetric as error:
        detail = f"series {question.series!r} has no metric {question.metric!r}"
        raise Refused(404, "unknown_metric", detail, known=list(error.known)) from error
    except UnknownMethod as error:
        raise Refused(422, "unknown_method", str(error), known=forecasting.methods.names()) from error
    except NoAnswer as error:
        detail = f"no forecast of {question.metric} of {question.series}: {error}"
        extra: dict[str, Any] = {"down": dict(error.down)} if error.down else {}
        raise Refused(409, error.code, detail, changed=list(error.changed), **extra) from error


def _series(request: HttpRequest, query: ForecastQuery, metric: str) -> str:
    """Return the name of the requested series; the request names the series or gives its path.

    *application* and *role*, or *application* and *resources*, form the path. Raises Refused unless
    exactly one series matches.
    """
    roles = resources_by_role(query.role, roles_of(query.application))
    if bool(query.series) == bool(query.application):
        raise Refused(422, "invalid", "expected either series, or application and its path")
    if query.series:
        if roles or query.resources:
            extra = "role" if roles else "resources"
            raise Refused(422, "invalid", f"expected no part of a path beside series, got {extra}")
        return query.series
    if bool(roles) == bool(query.resources):
        raise Refused(422, "invalid", "expected either role, or resources")
    return _series_on_path(request, query, roles, metric)


def _series_on_path(
    request: HttpRequest, query: ForecastQuery, roles: Mapping[str, Sequence[str]], metric: str
) -> str:
    by: By = "path" if roles else "resources"
    wanted = path(roles) if roles else resource_set(query.resources.split(","))
    matching = candidates(
        request.user, by, [wanted], application=query.application, metric=metric, probability=0.5
    )
    names = sorted((candidate.name for candidate in matching), key=sort_name)
    if not names:
        detail = f"there is no series of {query.application!r} on {wanted} that you may see"
        raise Refused(404, "unknown_path", detail)
    if len(names) > 1:
        detail = f"{len(names)} series of {query.application!r} are on {wanted}: give one of them as series"
        raise Refused(409, "ambiguous", detail, known=names)
    return names[0]


def _probabilities(text: str) -> list[float]:
    try:
        probabilities = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        probabilities = [0.0]
    if len(probabilities) > MOST_QUANTILES or not all(LOWEST <= each <= HIGHEST for each in probabilities):
        expected = f"expected at most {MOST_QUANTILES} numbers from {LOWEST} to {HIGHEST}"
        raise Refused(422, "invalid", f"quantiles: {expected}, separated by commas, got {text[:100]!r}")
    return probabilities


def _forecast_fields(
    question: ForecastQuestion,
    forecast: ForecastAnswer,
    level: float,
    probabilities: Sequence[float],
    now: datetime,
) -> dict[str, Any]:
    """Return the fields of ``ForecastOut``."""
    tail = lower_tail(level)
    grid = forecast.quantiles or ()
    return {
        "id": forecast.forecast,
        "series": question.series,
        "metric": question.metric,
        "unit": forecast.unit,
        "method": forecast.method,
        "predictor": forecast.predictor,
        "mean": forecast.mean,
        "median": forecast.median,
        "interval": {
            "level": level,
            "lower": quantile(grid, tail),
            "upper": quantile(grid, 1.0 - tail),
        },
        "quantiles": _quantiles(grid, probabilities),
        "n": forecast.n,
        "at": max(question.at or now, now),
        "issued_at": forecast.issued_at,
        "data_until": forecast.last_time,
        "data_age_seconds": max((now - (forecast.known_until or now)).total_seconds(), 0.0),
        "success": _success(forecast, probabilities),
        "track_record": {
            "n": forecast.record_n,
            "level": level,
            "mean_absolute_error": forecast.mean_absolute_error,
            "relative_error": forecast.relative_error,
            "mean_absolute_scaled_error": forecast.mean_absolute_scaled_error,
            "coverage": forecast.coverage(level),
            "winkler_score": forecast.winkler_score,
        },
        "stages": msgspec.Raw((forecast.explanation or "[]").encode()),
    }


def _success(forecast: ForecastAnswer, probabilities: Sequence[float]) -> dict[str, Any] | None:
    if forecast.success_probability is None:
        return None
    quantiles = forecast.success_quantiles
    return {
        "n": forecast.success_n,
        "probability": forecast.success_probability,
        "expected_seconds": forecast.success_seconds,
        "quantiles": _quantiles(quantiles, probabilities) if quantiles else None,
    }


def _quantiles(grid: Sequence[float], probabilities: Sequence[float]) -> dict[str, float]:
    return {repr(probability): quantile(grid, probability) for probability in probabilities}
