"""Forecasts: how long will it take, how sure is that, and how good were the answers before?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from django.utils import timezone
from ninja import Query, Router, Schema

import forecasting.methods
from forecasting.base import Abstained, UnknownMethod
from monitor.api.problems import Refused
from monitor.models import Metric
from monitor.services import forecast as service

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router()


class Interval(Schema):
    level: float
    lower: float
    upper: float


class TrackRecord(Schema):
    n: int
    level: float
    mean_absolute_error: float | None
    relative_error: float | None
    mean_absolute_scaled_error: float | None
    coverage: float | None
    winkler_score: float | None


class Forecast(Schema):
    series: str
    metric: str
    unit: str
    method: str
    mean: float
    interval: Interval
    n: int
    issued_at: datetime
    data_until: datetime
    data_age_seconds: float
    track_record: TrackRecord


@router.get("", response=Forecast, summary="Forecast the next value of a metric")
def forecast(
    request: HttpRequest,
    series: str,
    metric: str = "total.seconds",
    method: str = service.METHOD,
    level: Annotated[float, Query(ge=0.5, le=0.99)] = service.LEVEL,
) -> Forecast:
    """What the next run of *series* will show in *metric*, with the interval in which it lies with
    probability *level*, and the track record of these forecasts. Abstains (409) with a reason while too
    little is known."""
    level = round(level, 2)  # each is kept: there shall be as many as people tell apart
    wanted = _metric(request, series, metric)
    now = timezone.now()
    try:
        issued = service.issue(wanted, now, method=method, level=level)
    except UnknownMethod as error:
        raise Refused(422, "unknown_method", str(error), known=forecasting.methods.names()) from error
    except Abstained as error:
        raise Refused(409, error.reason, f"no forecast of {metric} of {series}: {error}") from error
    record = service.track_record(wanted, method=method, level=level)
    return Forecast(
        series=series,
        metric=metric,
        unit=wanted.unit,
        method=method,
        mean=issued.mean,
        interval=Interval(level=level, lower=issued.lower, upper=issued.upper),
        n=issued.n,
        issued_at=issued.issued_at,
        data_until=issued.last_time,
        data_age_seconds=(now - issued.last_known_at).total_seconds(),
        track_record=TrackRecord(**vars(record)),
    )


def _metric(request: HttpRequest, series: str, name: str) -> Metric:
    visible = Metric.objects.visible_to(request.user).filter(series__name=series)
    found = visible.filter(name=name).select_related("series").first()
    if found is not None:
        return found
    known = sorted(visible.values_list("name", flat=True))
    if known:
        raise Refused(404, "unknown_metric", f"series {series!r} has no metric {name!r}", known=known)
    raise Refused(404, "unknown_series", f"there is no series {series!r} with values that you may see")
