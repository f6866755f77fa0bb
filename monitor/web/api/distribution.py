"""Histogram and quantiles of a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ninja import Query, Router
from pydantic import Field

from monitor.depot.rollups import histogram
from monitor.web.api.http.answers import MetricOut, WindowOut, metric_fields, window_fields
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.find_metrics import find_metric, time_window
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.schemas import Segment

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["values"])


class DistributionOut(MetricOut, WindowOut):
    """``counts[i]`` of the *n* values lie in ``[edges[i], edges[i + 1])``; the last bin includes its upper
    edge. *quantiles* maps percentages to values. If *exact* is false, a value may be off by up to 1 %."""

    n: int
    edges: list[float]
    counts: list[int]
    quantiles: dict[str, float]
    exact: bool


class DistributionQuery(Sparse, WindowFilter):
    bins: Annotated[int, Field(ge=1, le=histogram.MOST_BINS)] = histogram.BINS
    segment: Segment | None = None


@router.get(
    "/series/{series}/metrics/{metric}/distribution",
    response=DistributionOut,
    operation_id="show_distribution",
    openapi_extra=declare(
        errors={404: ["unknown_metric", "unknown_segment", "unknown_series"], 422: ["window_too_long"]}
    ),
    summary="Show the histogram and quantiles of a metric",
)
def show_distribution(
    request: HttpRequest, series: str, metric: str, query: Query[DistributionQuery]
) -> HttpResponse:
    """Return the histogram of the values of passed runs from *start* until before *end* (default: the last 30
    days), of one *segment* (default: the segment that ran last)."""
    window = time_window(query.start, query.end)
    wanted = find_metric(request, series, metric, query.segment)
    result = histogram.histogram(wanted, window.start, window.end, query.bins)
    return show_item(
        query,
        {
            **metric_fields(wanted),
            **window_fields(window, result),
            "n": result.n,
            "edges": result.edges,
            "counts": result.counts,
            "quantiles": result.quantiles,
            "exact": result.exact,
        },
        DistributionOut,
    )
