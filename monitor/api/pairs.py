"""What a probe had said when an application ran, and how much both have to do with each other."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from ninja import Query, Router, Schema
from pydantic import AwareDatetime

from monitor.api.answers import MetricOut, WindowOut, answer, of_metric, of_window, times
from monitor.api.lookup import find_metric, in_utc, window
from monitor.api.problems import Refused
from monitor.depot.samples.correlation import LEVEL, correlation
from monitor.depot.samples.pairing import TooManyValues, paired

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router()
MOST_SECONDS = 366 * 86_400.0  # of a lag
USUAL_PAIRS, MOST_PAIRS = 1000, 100_000


class CoefficientOut(Schema):
    """*p*: how often chance alone would give a value as far from 0, or farther."""

    value: float
    lower: float
    upper: float
    p: float


class CorrelationOut(Schema):
    """Of all *n* pairs; *lower* and *upper* hold the truth with the probability *level*. Without coefficients
    *why* says why there are none."""

    n: int
    level: float
    pearson: CoefficientOut | None
    spearman: CoefficientOut | None
    why: Literal["", "too_few", "constant"]


class PairsOut(WindowOut):
    """Columns of one length: the newest pairs, in order. *probe_age_seconds* is from the probe's slot to the
    application's. *unpaired* values of the application came before any of the probe was known."""

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


@router.get("", response=PairsOut, summary="An application's values, each with what a probe had said by then")
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
    """Values of passed runs of *application* from *start* until before *end* (by default the last 30 days),
    each with the value of the latest slot of *probe* whose report had ended *lag_seconds* before. With
    *known_by* only what was known then. Both of the segments that ran last. The correlation is of all pairs,
    shown are the *newest*."""
    asked = window(start, end)
    first = find_metric(request, application, application_metric, None)
    second = find_metric(request, probe, probe_metric, None)
    then = in_utc("known_by", known_by)
    try:
        found = paired(
            first, second, lag_seconds=lag_seconds, start=asked.start, end=asked.end, known_by=then
        )
    except TooManyValues as error:
        raise Refused(422, "too_many_values", f"{error}: ask for a shorter stretch") from error
    shown = slice(max(len(found) - newest, 0), None)
    return answer(
        {
            "application": of_metric(first),
            "probe": of_metric(second),
            **of_window(asked, found),
            "lag_seconds": lag_seconds,
            "unpaired": found.unpaired,
            "correlation": asdict(correlation(found.application_value, found.probe_value, level=level)),
            "application_time": times(found.application_time[shown]),
            "application_value": found.application_value[shown].tolist(),
            "probe_time": times(found.probe_time[shown]),
            "probe_value": found.probe_value[shown].tolist(),
            "probe_age_seconds": found.probe_age_seconds[shown].tolist(),
        }
    )
