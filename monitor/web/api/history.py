"""The history of a metric, downsampled to a number of points."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from ninja import Query, Router
from pydantic import Field

from monitor.depot.samples.downsampled import downsample
from monitor.depot.samples.m4 import LEAST_POINTS
from monitor.web.api.http.answers import MetricOut, WindowOut, metric_fields, rfc3339, window_fields
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.find_metrics import find_metric, time_window
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.schemas import Segment

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["values"])
USUAL_POINTS, MOST_POINTS = 1000, 20_000


class HistoryOut(MetricOut, WindowOut):
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


class HistoryQuery(Sparse, WindowFilter):
    points: Annotated[int, Field(ge=LEAST_POINTS, le=MOST_POINTS)] = USUAL_POINTS
    segment: Segment | None = None


@router.get(
    "/series/{series}/metrics/{metric}/history",
    response=HistoryOut,
    operation_id="show_history",
    openapi_extra=declare(
        errors={404: ["unknown_metric", "unknown_segment", "unknown_series"], 422: ["window_too_long"]}
    ),
    summary="Show the history of a metric, downsampled",
)
def show_history(request: HttpRequest, series: str, metric: str, query: Query[HistoryQuery]) -> HttpResponse:
    """Return the values of passed runs from *start* until before *end* (default: the last 30 days), of one
    *segment* (default: the segment that ran last). Extremes are kept, whatever the number of *points*."""
    window = time_window(query.start, query.end)
    wanted = find_metric(request, series, metric, query.segment)
    values = downsample(wanted, start=window.start, end=window.end, points=query.points)
    return show_item(
        query,
        {
            **metric_fields(wanted),
            **window_fields(window, values),
            "method": values.method,
            "n": values.n,
            "step_seconds": values.step_seconds,
            "time": rfc3339(values.time),
            "value": values.value.tolist(),
            "lowest": None if values.lowest is None else values.lowest.tolist(),
            "highest": None if values.highest is None else values.highest.tolist(),
        },
        HistoryOut,
    )
