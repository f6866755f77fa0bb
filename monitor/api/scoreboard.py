"""The scoreboard: how good forecasts were, by method, metric, site, and over time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema

from monitor.api.answers import answer
from monitor.api.paths import checked
from monitor.forecasts import scoreboard as service
from monitor.forecasts import scoreboard_csv
from monitor.forecasts.defaults import METHOD
from monitor.forecasts.scoreboard import SPANS, Choice
from monitor.forecasts.scoreboard_csv import Part

if TYPE_CHECKING:
    from monitor.forecasts.scoreboard import Last
    from monitor.models import ForecastPredictor

router = Router()
Range = Literal["7d", "30d", "90d", "1y"]
_CSV = {"description": "A row of names, and one for each score", "content": {"text/csv": {}}}


class ScoreOut(Schema):
    """Of *n* forecasts that have met their truth. Errors are of the median; *scaled_error* is its by that of
    the last value: below 1 is better. Of *interval_n* truths *coverage_80* lay in the interval of 80 %, and
    *coverage_90* in that of 90 %. *start*: the day, or the Monday of the week."""

    name: str
    unit: str
    n: int
    mean_absolute_error: float | None
    relative_error: float | None
    scaled_error: float | None
    interval_n: int
    coverage_80: float | None
    coverage_90: float | None
    start: date | None = None


class LastOut(Schema):
    forecast: int
    series: str
    unit: str
    issued_at: datetime
    n: int
    mean: float
    median: float
    lower: float
    upper: float
    level: float
    truth: float
    truth_time: datetime


class PredictorOut(Schema):
    """Over *n* values the mean absolute error was less by *gain* (a share) than without the *predictor*,
    which by chance is so with *p_value* (Diebold, Mariano). What does not help is not *kept*."""

    series: str
    predictor_series: str
    predictor_metric: str
    n: int
    gain: float | None
    p_value: float | None
    kept: bool


class ConsumerOut(Schema):
    name: str
    n: int
    passed: int
    mean_absolute_error: float | None
    relative_error: float | None
    coverage: float | None
    newest_at: datetime


class ScoreboardOut(Schema):
    """*whole* is of the site, metric and method that were asked for, *times* too; of *methods*, *metrics* and
    *sites* each leaves out one of them. A series counts at each of its sites."""

    site: str
    metric: str
    method: str
    range: str
    whole: ScoreOut | None
    methods: list[ScoreOut]
    metrics: list[ScoreOut]
    sites: list[ScoreOut]
    times: list[ScoreOut]
    last: list[LastOut]
    predictors: list[PredictorOut]
    consumers: list[ConsumerOut]


@router.get("", response=ScoreboardOut, summary="How good forecasts were")
def board(
    request: HttpRequest,
    site: str = "",
    metric: str = service.METRIC,
    method: str = METHOD,
    range: Range = "30d",  # as pages call it
) -> HttpResponse:
    """Of series that the one who asks may see: by method, metric, site, and day by day, or week by week where
    the *range* is longer than a month; the newest forecasts with their truths; what probes added; and, by
    what was told of real jobs, for whom."""
    choice = _choice(site, metric, method, range)
    found = service.scoreboard(request.user, choice, timezone.now())
    return answer(
        {
            "site": site,
            "metric": metric,
            "method": method,
            "range": range,
            "whole": found.whole,
            "methods": found.methods,
            "metrics": found.metrics,
            "sites": found.sites,
            "times": found.times,
            "last": [_last(one) for one in service.last_ones(request.user, choice)],
            "predictors": _predictors(service.predictors(request.user, choice)),
            "consumers": service.consumers(request.user),
        }
    )


@router.get("/{part}.csv", summary="A table of it, as CSV", openapi_extra={"responses": {200: _CSV}})
def table(
    request: HttpRequest,
    part: Part,
    site: str = "",
    metric: str = service.METRIC,
    method: str = METHOD,
    range: Range = "30d",
) -> HttpResponse:
    """The scores by method, metric, site or time, or the *last* forecasts with their truths: as the page has
    it."""
    name, text = scoreboard_csv.table(
        request.user, _choice(site, metric, method, range), part, timezone.now()
    )
    answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _choice(site: str, metric: str, method: str, range: Range) -> Choice:
    span = next(one for one in SPANS if one.key == range)
    return Choice(checked(site), checked(metric), checked(method), span)


def _last(one: Last) -> dict[str, Any]:
    """As ``LastOut``."""
    told = ("issued_at", "n", "mean", "median", "lower", "upper", "level", "truth", "truth_time")
    figures = {name: getattr(one.forecast, name) for name in told}
    return {"forecast": one.forecast.pk, "series": one.series, "unit": one.unit, **figures}


def _predictors(found: Iterable[ForecastPredictor]) -> list[dict[str, Any]]:
    """As ``PredictorOut``."""
    return [
        {
            "series": one.metric.series.name,
            "predictor_series": one.series.name,
            "predictor_metric": one.name,
            "n": one.n,
            "gain": one.gain,
            "p_value": one.p_value,
            "kept": bool(one.is_kept),
        }
        for one in found
    ]
