"""The history of a metric, downsampled to a number of points."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from ninja import Query, Router
from pydantic import AwareDatetime

from monitor.api.http.answers import MetricOut, WindowOut, answer, metric_fields, rfc3339, window_fields
from monitor.api.http.find_metrics import find_metric, time_window
from monitor.depot.samples.downsampled import downsample
from monitor.depot.samples.m4 import LEAST_POINTS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["values"])
USUAL_POINTS, MOST_POINTS = 1000, 20_000


class CondensedOut(MetricOut, WindowOut):
    """Columns of equal length. With the *method* ``raw``, they have all *n* values; with ``m4``, the first,
    last, lowest and highest value of each interval. With ``hours`` and ``days``, they have a mean for each
    *step_seconds* from *time* on, with its *lowest* and *highest* value; otherwise these three fields are
    null."""

    method: Literal["raw", "m4", "hours", "days"]
    n: int
    step_seconds: float | None
    time: list[datetime]
    value: list[float]
    lowest: list[float] | None
    highest: list[float] | None


@router.get(
    "/series/{name}/metrics/{metric}/history",
    response=CondensedOut,
    summary="The history of a metric, downsampled",
)
def history(
    request: HttpRequest,
    name: str,
    metric: str,
    start: AwareDatetime | None = None,
    end: AwareDatetime | None = None,
    points: Annotated[int, Query(ge=LEAST_POINTS, le=MOST_POINTS)] = USUAL_POINTS,
    segment: int | None = None,
) -> HttpResponse:
    """Return the values of passed runs from *start* until before *end* (default: the last 30 days), of one
    *segment* (default: the segment that ran last). Extremes are kept, whatever the number of *points*."""
    window = time_window(start, end)
    wanted = find_metric(request, name, metric, segment)
    series = downsample(wanted, start=window.start, end=window.end, points=points)
    return answer(
        {
            **metric_fields(wanted),
            **window_fields(window, series),
            "method": series.method,
            "n": series.n,
            "step_seconds": series.step_seconds,
            "time": rfc3339(series.time),
            "value": series.value.tolist(),
            "lowest": None if series.lowest is None else series.lowest.tolist(),
            "highest": None if series.highest is None else series.highest.tolist(),
        }
    )
