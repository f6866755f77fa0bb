"""How the values of a metric are distributed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ninja import Query, Router
from pydantic import AwareDatetime

from monitor.api.answers import MetricOut, WindowOut, answer, of_metric, of_window
from monitor.api.lookup import find_metric, window
from monitor.depot.rollups import histogram as service

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router()


class DistributionOut(MetricOut, WindowOut):
    """``counts[i]`` of the *n* values lie from ``edges[i]`` until before ``edges[i + 1]``, in the last bin
    also on its upper edge. *quantiles*, by percent: the least values that so many do not exceed. If not
    *exact*, each value counts as one that is at most 1 % away from it."""

    n: int
    edges: list[float]
    counts: list[int]
    quantiles: dict[str, float]
    exact: bool


@router.get(
    "/{name}/metrics/{metric}/distribution", response=DistributionOut, summary="How values are distributed"
)
def distribution(
    request: HttpRequest,
    name: str,
    metric: str,
    start: AwareDatetime | None = None,
    end: AwareDatetime | None = None,
    bins: Annotated[int, Query(ge=1, le=service.MOST_BINS)] = service.BINS,
    segment: int | None = None,
) -> HttpResponse:
    """Of values of passed runs from *start* until before *end* (by default the last 30 days), of the segment
    that ran last, unless you name another."""
    asked = window(start, end)
    wanted = find_metric(request, name, metric, segment)
    found = service.histogram(wanted, asked.start, asked.end, bins)
    return answer(
        {
            **of_metric(wanted),
            **of_window(asked, found),
            "n": found.n,
            "edges": found.edges,
            "counts": found.counts,
            "quantiles": found.quantiles,
            "exact": found.exact,
        }
    )
