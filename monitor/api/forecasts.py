"""Forecasts: how long will it take, how sure is that, and how good were the answers before?"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from django.utils import timezone
from ninja import Query, Router, Schema

import forecasting.methods
from forecasting.base import Abstained, UnknownMethod
from monitor.api.problems import Refused
from monitor.models import Metric, Series
from monitor.services import forecast as service
from monitor.services.segments import Standing, currents, standing

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
    probability *level*, and the track record of these forecasts. Only runs that did what the next one will
    do count: those of the current segment. Abstains (409) with a reason while too little is known."""
    level = round(level, 2)  # each is kept: there shall be as many as people tell apart
    wanted = _metric(request, series, metric)
    now = timezone.now()
    try:
        issued = service.issue(wanted, now, method=method, level=level)
    except UnknownMethod as error:
        raise Refused(422, "unknown_method", str(error), known=forecasting.methods.names()) from error
    except Abstained as error:
        raise _abstained(wanted, error) from error
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


def _metric(request: HttpRequest, name: str, metric: str) -> Metric:
    """The metric that the next run of the series *name* will give a value of."""
    visible = Series.objects.visible_to(request.user).filter(name=name)
    current = list(currents(visible).values())
    found = Metric.objects.filter(segment__in=current, name=metric).select_related("segment__series").first()
    if found is None:
        raise _not_there(visible.first(), name, metric)
    return found


def _not_there(series: Series | None, name: str, metric: str) -> Refused:
    """Why there is nothing to forecast from."""
    known = sorted(set(Metric.objects.filter(segment__series=series).values_list("name", flat=True)))
    if series is None or not known:
        return Refused(404, "unknown_series", f"there is no series {name!r} with values that you may see")
    if metric not in known:
        return Refused(404, "unknown_metric", f"series {name!r} has no metric {metric!r}", known=known)
    stands = standing(series)
    return _too_few(metric, name, stands.said(0), stands)


def _abstained(metric: Metric, error: Abstained) -> Refused:
    stands = standing(metric.series)
    if error.reason == "too_few" and stands.changes:
        passed = metric.samples.filter(passed=True).count()
        return _too_few(metric.name, metric.series.name, f"{error}: {stands.said(passed)}", stands)
    return Refused(409, error.reason, f"no forecast of {metric.name} of {metric.series.name}: {error}")


def _too_few(metric: str, series: str, why: str, stands: Standing) -> Refused:
    changed = [str(change) for change in stands.changes]
    return Refused(409, "too_few", f"no forecast of {metric} of {series}: {why}", changed=changed)
