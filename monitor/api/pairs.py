"""Values of an application paired with those of a probe, and their correlation."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from ninja import Query, Router, Schema
from pydantic import AwareDatetime

from monitor.api.http.answers import MetricOut, WindowOut, answer, metric_fields, rfc3339, window_fields
from monitor.api.http.find_metrics import find_metric, in_utc, time_window
from monitor.api.http.problems import Refused
from monitor.depot.samples.correlation import LEVEL, correlation
from monitor.depot.samples.pairing import TooManyValues, paired

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
    """Columns of equal length with the newest pairs, sorted by time. *probe_age_seconds* is the time from the
    probe's slot to the application's slot. *unpaired* is the number of application values for which no probe
    value was known."""

    application: MetricOut
    probe: MetricOut
    lag_seconds: float
    unpaired: int
    correlation: CorrelationOut
    application_time: list[datetime]
    application_value: list[float]
    probe_time: list[datetime]
    probe_value: list[float]
    probe_age_seconds: list[float]


@router.get(
    "/pairs",
    response=PairsOut,
    summary="Values of an application, each with the latest known value of a probe",
)
def pairs(
    request: HttpRequest,
    application: str,
    probe: str,
    application_metric: str = "total.seconds",
    probe_metric: str = "total.seconds",
    lag_seconds: Annotated[float, Query(ge=0, le=MOST_SECONDS)] = 0.0,
    start: AwareDatetime | None = None,
    end: AwareDatetime | None = None,
    known_by: AwareDatetime | None = None,
    level: Annotated[float, Query(ge=0.5, le=0.999)] = LEVEL,
    newest: Annotated[int, Query(ge=0, le=MOST_PAIRS)] = USUAL_PAIRS,
) -> HttpResponse:
    """Values of passed runs of *application* from *start* until before *end* (default: the last 30 days),
    each paired with a value of *probe*: the value of the latest slot whose run had ended *lag_seconds*
    earlier. With *known_by* only values known at that time are used. All values are from the segments that
    ran last. The correlation covers all pairs; the *newest* of them are listed."""
    window = time_window(start, end)
    first = find_metric(request, application, application_metric, None)
    second = find_metric(request, probe, probe_metric, None)
    latest_known = in_utc("known_by", known_by)
    try:
        paired_values = paired(
            first, second, lag_seconds=lag_seconds, start=window.start, end=window.end, known_by=latest_known
        )
    except TooManyValues as error:
        raise Refused(422, "too_many_values", f"{error}: ask for a shorter window") from error
    coefficients = correlation(paired_values.application_value, paired_values.probe_value, level=level)
    listed = slice(max(len(paired_values) - newest, 0), None)
    return answer(
        {
            "application": metric_fields(first),
            "probe": metric_fields(second),
            **window_fields(window, paired_values),
            "lag_seconds": lag_seconds,
            "unpaired": paired_values.unpaired,
            "correlation": asdict(coefficients),
            "application_time": rfc3339(paired_values.application_time[listed]),
            "application_value": paired_values.application_value[listed].tolist(),
            "probe_time": rfc3339(paired_values.probe_time[listed]),
            "probe_value": paired_values.probe_value[listed].tolist(),
            "probe_age_seconds": paired_values.probe_age_seconds[listed].tolist(),
        }
    )
