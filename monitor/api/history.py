"""The history of a metric, in as many points as somebody can use."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from ninja import Query, Router
from pydantic import AwareDatetime

from monitor.api.answers import MetricOut, WindowOut, answer, of_metric, of_window, times
from monitor.api.lookup import find_metric, window
from monitor.depot.samples.downsampled import downsample
from monitor.depot.samples.m4 import LEAST_POINTS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router()
USUAL_POINTS, MOST_POINTS = 1000, 20_000


class CondensedOut(MetricOut, WindowOut):
    """Columns of one length. *method* ``raw``: all *n* values; ``m4``: those of them that a drawing needs;
    ``hours`` and ``days``: means of stretches of *step_seconds* that begin at *time*, with the *lowest* and
    the *highest* value of each; by the other methods these three are null."""

    method: Literal["raw", "m4", "hours", "days"]
    n: int
    step_seconds: float | None
    time: list[datetime]
    value: list[float]
    lowest: list[float] | None
    highest: list[float] | None


@router.get("/{name}/metrics/{metric}/history", response=CondensedOut, summary="A history in few points")
def history(
    request: HttpRequest,
    name: str,
    metric: str,
    start: AwareDatetime | None = None,
    end: AwareDatetime | None = None,
    points: Annotated[int, Query(ge=LEAST_POINTS, le=MOST_POINTS)] = USUAL_POINTS,
    segment: int | None = None,
) -> HttpResponse:
    """Values of passed runs from *start* until before *end* (by default the last 30 days), of the segment
    that ran last, unless you name another. No extreme is lost, however few *points* there are."""
    asked = window(start, end)
    wanted = find_metric(request, name, metric, segment)
    found = downsample(wanted, start=asked.start, end=asked.end, points=points)
    return answer(
        {
            **of_metric(wanted),
            **of_window(asked, found),
            "method": found.method,
            "n": found.n,
            "step_seconds": found.step_seconds,
            "time": times(found.time),
            "value": found.value.tolist(),
            "lowest": None if found.lowest is None else found.lowest.tolist(),
            "highest": None if found.highest is None else found.highest.tolist(),
        }
    )
