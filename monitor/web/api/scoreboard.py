"""Forecast accuracy by method, metric, site and time."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import BaseModel

from monitor.analysis.forecasts import scoreboard as service
from monitor.analysis.forecasts import scoreboard_csv
from monitor.analysis.forecasts.defaults import HEADLINE, METHOD
from monitor.analysis.forecasts.scoreboard import SPANS, ScoreFilter
from monitor.analysis.forecasts.scoreboard_csv import Part
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.schemas import NameFilter

if TYPE_CHECKING:
    from monitor.models import Forecast, ForecastPredictor

router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)
Range = Literal["7d", "30d", "90d", "1y"]
_CSV = {"description": "A header row, then one row per score", "content": {"text/csv": {}}}


class ScoreOut(Schema):
    """Scores over *n* forecasts. Errors are errors of the median. *relative_error* is the sum of the errors
    divided by that of the actual values. *scaled_error* is relative to the baseline (last value): below 1 is
    better. *coverage_80* and *coverage_90* are the shares of *interval_n* actual values inside the 80 % and
    90 % intervals. *start* is the day, or the Monday of the week."""

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
    actual: float
    actual_at: datetime


class PredictorOut(Schema):
    """*gain* is the relative reduction of the mean absolute error by the predictor, over *n* values.
    *p_value* is the p-value of the Diebold-Mariano test of this gain. Predictors that do not help are not
    kept."""

    series: str
    predictor_series: str
    predictor_metric: str
    n: int
    gain: float | None
    p_value: float | None
    is_kept: bool


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


class ScoreQuery(BaseModel):
    site: NameFilter = ""
    metric: NameFilter = HEADLINE
    method: NameFilter = METHOD
    range: Range = "30d"


class ScoreboardQuery(Sparse, ScoreQuery):
    """The same filters, and the fields to answer with."""


@router.get(
    "/scoreboard",
    response=ScoreboardOut,
    operation_id="show_scoreboard",
    summary="Show the accuracy of forecasts",
)
def show_scoreboard(request: HttpRequest, query: Query[ScoreboardQuery]) -> HttpResponse:
    """Return the scores of the series that you may see, by method, metric, site and day (by week if *range*
    exceeds a month). The answer also has the newest forecasts with their actual values, the gain from probes,
    and the accuracy by consumer, which is computed from reported job outcomes."""
    choice = _choice(query)
    board = service.scoreboard(request.user, choice, timezone.now())
    return show_item(
        query,
        {
            "site": query.site,
            "metric": query.metric,
            "method": query.method,
            "range": query.range,
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
        },
        ScoreboardOut,
    )


@router.get(
    "/scoreboard/{part}.csv",
    operation_id="download_scores",
    summary="Download one table of the accuracy of forecasts as CSV",
    openapi_extra=declare(errors={503: ["busy"]}, responses={200: _CSV}),
)
@few_at_once
def download_scores(request: HttpRequest, part: Part, query: Query[ScoreQuery]) -> HttpResponse:
    """Return the scores by method, metric, site or time; or the *last* forecasts with their actual values."""
    return csv_table(request, _choice(query), part)


def csv_table(request: HttpRequest, choice: ScoreFilter, part: Part) -> HttpResponse:
    """Return one table of the scoreboard as a file to download."""
    now = timezone.now()
    text = scoreboard_csv.table(request.user, choice, part, now)
    file_name = scoreboard_csv.file_name(choice, part, now)
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'}
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _choice(query: ScoreQuery) -> ScoreFilter:
    span = next(span for span in SPANS if span.key == query.range)
    return ScoreFilter(query.site, query.metric, query.method, span)


def _fields(schema: type[Schema], source: object, **others: object) -> dict[str, object]:
    """Return the values of the fields of *schema*, from *others* or else from the attributes of *source*."""
    names = schema.model_fields
    return {name: others[name] if name in others else getattr(source, name) for name in names}


def _last_fields(forecast: Forecast) -> dict[str, object]:
    of_metric = {"series": forecast.metric.series.name, "unit": forecast.metric.unit}
    actual = {"actual": forecast.truth, "actual_at": forecast.truth_time}
    return _fields(LastOut, forecast, forecast=forecast.pk, **actual, **of_metric)


def _predictor_fields(predictor: ForecastPredictor) -> dict[str, object]:
    return _fields(
        PredictorOut,
        predictor,
        series=predictor.metric.series.name,
        predictor_series=predictor.series.name,
        predictor_metric=predictor.name,
        is_kept=bool(predictor.is_kept),
    )
