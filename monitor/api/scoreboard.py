"""Forecast accuracy by method, metric, site and time."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema

from monitor.api.http.answers import answer
from monitor.api.http.auth import SCHEDULER_AUTH
from monitor.api.http.query_names import checked
from monitor.forecasts import scoreboard as service
from monitor.forecasts import scoreboard_csv
from monitor.forecasts.defaults import HEADLINE, METHOD
from monitor.forecasts.scoreboard import SPANS, ScoreFilter
from monitor.forecasts.scoreboard_csv import Part

if TYPE_CHECKING:
    from monitor.models import Forecast, ForecastPredictor

router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)
Range = Literal["7d", "30d", "90d", "1y"]
_CSV = {"description": "A header row, then one row per score", "content": {"text/csv": {}}}


class ScoreOut(Schema):
    """Scores over *n* forecasts. Errors are errors of the median. *scaled_error* is relative to the baseline
    (last value): below 1 is better. *coverage_80* and *coverage_90* are the shares of *interval_n* actual
    values inside the 80 % and 90 % intervals. *start* is the day, or the Monday of the week."""

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
    """*gain* is the relative reduction of the mean absolute error by the predictor, over *n* values.
    *p_value* is the p-value of the Diebold-Mariano test of this gain. Predictors that do not help are not
    *kept*."""

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
    """*whole* and *times* apply all three filters (site, metric, method). *methods* ignores the filter by
    method, *metrics* the filter by metric, and *sites* the filter by site. A series counts at each of its
    sites."""

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


@router.get(
    "/scoreboard",
    response=ScoreboardOut,
    operation_id="monitor_api_scoreboard_board",
    summary="Forecast accuracy",
)
def show_scoreboard(
    request: HttpRequest,
    site: str = "",
    metric: str = HEADLINE,
    method: str = METHOD,
    range: Range = "30d",
) -> HttpResponse:
    """Return the scores of the series that you may see, by method, metric, site and day (by week if *range*
    exceeds a month). The answer also has the newest forecasts with their actual values, the gain from probes,
    and the accuracy by consumer, which is computed from reported job outcomes."""
    choice = _choice(site, metric, method, range)
    board = service.scoreboard(request.user, choice, timezone.now())
    return answer(
        {
            "site": site,
            "metric": metric,
            "method": method,
            "range": range,
            "whole": board.whole,
            "methods": board.methods,
            "metrics": board.metrics,
            "sites": board.sites,
            "times": board.times,
            "last": [_last_fields(each) for each in service.recent_forecasts(request.user, choice)],
            "predictors": [_predictor_fields(each) for each in service.predictors(request.user, choice)],
            "consumers": [
                _fields(ConsumerOut, accuracy, name=name)
                for name, accuracy in service.consumers(request.user).items()
            ],
        }
    )


@router.get(
    "/scoreboard/{part}.csv",
    operation_id="monitor_api_scoreboard_table",
    summary="One table of the forecast accuracy, as CSV",
    openapi_extra={"responses": {200: _CSV}},
)
def download_table(
    request: HttpRequest,
    part: Part,
    site: str = "",
    metric: str = HEADLINE,
    method: str = METHOD,
    range: Range = "30d",
) -> HttpResponse:
    """Return the scores by method, metric, site or time; or the *last* forecasts with their actual values."""
    return csv_table(request, _choice(site, metric, method, range), part)


def csv_table(request: HttpRequest, choice: ScoreFilter, part: Part) -> HttpResponse:
    """Return one table of the scoreboard as a file to download."""
    now = timezone.now()
    text = scoreboard_csv.table(request.user, choice, part, now)
    file_name = scoreboard_csv.file_name(choice, part, now)
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _choice(site: str, metric: str, method: str, range: Range) -> ScoreFilter:
    span = next(span for span in SPANS if span.key == range)
    return ScoreFilter(checked(site), checked(metric), checked(method), span)


def _fields(schema: type[Schema], source: object, **others: object) -> dict[str, object]:
    """Return the values of the fields of *schema*, from *others* or else from the attributes of *source*."""
    names = schema.model_fields
    return {name: others[name] if name in others else getattr(source, name) for name in names}


def _last_fields(forecast: Forecast) -> dict[str, object]:
    of_metric = {"series": forecast.metric.series.name, "unit": forecast.metric.unit}
    return _fields(LastOut, forecast, forecast=forecast.pk, **of_metric)


def _predictor_fields(predictor: ForecastPredictor) -> dict[str, object]:
    return _fields(
        PredictorOut,
        predictor,
        series=predictor.metric.series.name,
        predictor_series=predictor.series.name,
        predictor_metric=predictor.name,
        kept=bool(predictor.is_kept),
    )
