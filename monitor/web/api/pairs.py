"""Values of a series paired with those of a predictor, and their correlation."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from ninja import Query, Router, Schema
from pydantic import Field

from monitor.depot.samples.correlation import LEVEL, correlation
from monitor.depot.samples.pairing import TooManyValues, paired
from monitor.web.api.http.answers import MetricOut, WindowOut, metric_fields, rfc3339, window_fields
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.find_metrics import find_metric, time_window
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.query_names import USUAL_METRIC
from monitor.web.api.http.schemas import Name, Time

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["values"])
MOST_SECONDS = 366 * 86_400.0  # the longest lag
USUAL_PAIRS, MOST_PAIRS = 1000, 100_000


class CoefficientOut(Schema):
    """A correlation coefficient, with its confidence interval from *lower* to *upper*. *p* is the p-value of
    the hypothesis that there is no correlation."""

    value: float
    lower: float
    upper: float
    p: float


class CorrelationOut(Schema):
    """The correlation over all *n* pairs. *level* is the level of the confidence intervals. *why* says why
    the coefficients are null."""

    n: int
    level: float
    pearson: CoefficientOut | None
    spearman: CoefficientOut | None
    why: Literal["", "too_few", "constant"]


class PairsOut(WindowOut):
    """Columns of equal length with the newest pairs, sorted by time."""

    target: MetricOut
    predictor: MetricOut
    lag_seconds: float
    unpaired: int
    correlation: CorrelationOut
    time: list[datetime]
    value: list[float]
    predictor_time: list[datetime]
    predictor_value: list[float]
    predictor_age_seconds: list[float]


class PairsQuery(Sparse, WindowFilter):
    series: Name
    predictor_series: Name
    metric: Name = USUAL_METRIC
    predictor_metric: Name = USUAL_METRIC
    lag_seconds: Annotated[float, Field(ge=0, le=MOST_SECONDS, allow_inf_nan=False)] = 0.0
    known_by: Time | None = None
    level: Annotated[float, Field(ge=0.5, le=0.999)] = LEVEL
    newest: Annotated[int, Field(ge=0, le=MOST_PAIRS)] = USUAL_PAIRS


@router.get(
    "/pairs",
    response=PairsOut,
    operation_id="show_pairs",
    openapi_extra=declare(
        errors={
            404: ["unknown_metric", "unknown_segment", "unknown_series"],
            422: ["too_many_values", "window_too_long"],
        }
    ),
    summary="Show values of a metric, each with the latest known value of a predictor",
)
def show_pairs(request: HttpRequest, query: Query[PairsQuery]) -> HttpResponse:
    """Values of passed runs of *series* from *start* until before *end* (default: the last 30 days), each
    paired with a value of the predictor: the value of the latest slot whose run had ended *lag_seconds*
    earlier. With *known_by* only values known at that time are used. All values are from the segments that
    ran last. The correlation covers all pairs; the *newest* of them are listed."""
    window = time_window(query.start, query.end)
    target = find_metric(request, query.series, query.metric, None)
    predictor = find_metric(request, query.predictor_series, query.predictor_metric, None)
    try:
        pairs = paired(
            target,
            predictor,
            lag_seconds=query.lag_seconds,
            start=window.start,
            end=window.end,
            known_by=query.known_by,
        )
    except TooManyValues as error:
        raise Refused(422, "too_many_values", f"{error}: ask for a shorter window") from error
    coefficients = correlation(pairs.application_value, pairs.probe_value, level=query.level)
    listed = slice(max(len(pairs) - query.newest, 0), None)
    return show_item(
        query,
        {
            "target": metric_fields(target),
            "predictor": metric_fields(predictor),
            **window_fields(window, pairs),
            "lag_seconds": query.lag_seconds,
            "unpaired": pairs.unpaired,
            "correlation": asdict(coefficients),
            "time": rfc3339(pairs.application_time[listed]),
            "value": pairs.application_value[listed].tolist(),
            "predictor_time": rfc3339(pairs.probe_time[listed]),
            "predictor_value": pairs.probe_value[listed].tolist(),
            "predictor_age_seconds": pairs.probe_age_seconds[listed].tolist(),
        },
        PairsOut,
    )
