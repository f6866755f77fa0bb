"""Statistics of a metric over a time window, as a whole or by hour, day, week, month or year."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from ninja import Query, Router, Schema

from monitor.depot.rollups.statistics import statistics as window_statistics
from monitor.depot.rollups.statistics import statistics_by
from monitor.web.api.http.answers import MetricOut, WindowOut, metric_fields, window_fields
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.find_metrics import LONGEST, find_metric, time_window
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.schemas import Segment

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["values"])
LONGEST_BY_HOUR = timedelta(days=400)
Every = Literal["none", "hour", "day", "week", "month", "year"]


class Figures(Schema):
    """*n* counts all values, and *passed* counts the values of passed runs. The other figures cover the
    values of passed runs; they are null if there are no such values."""

    n: int
    passed: int
    mean: float | None
    min: float | None
    max: float | None
    stdev: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class Bucket(Figures):
    start: datetime


class StatisticsOut(MetricOut, WindowOut):
    """*figures* cover the whole window. If *every* is not ``none``, *figures* is null and *buckets* lists the
    figures of each period; periods without values are left out."""

    every: Every
    figures: Figures | None
    buckets: list[Bucket] | None


class StatisticsQuery(Sparse, WindowFilter):
    every: Every = "none"
    segment: Segment | None = None


@router.get(
    "/series/{series}/metrics/{metric}/statistics",
    response=StatisticsOut,
    operation_id="show_statistics",
    openapi_extra=declare(
        errors={404: ["unknown_metric", "unknown_segment", "unknown_series"], 422: ["window_too_long"]}
    ),
    summary="Show statistics of a metric",
)
def show_statistics(
    request: HttpRequest, series: str, metric: str, query: Query[StatisticsQuery]
) -> HttpResponse:
    """Return statistics of the values from *start* until before *end* (default: the last 30 days), of one
    *segment* (default: the segment that ran last). Quantiles are exact to 1 %; all other figures are exact.
    Weeks begin on Monday; times are UTC."""
    every = query.every
    longest = LONGEST_BY_HOUR if every == "hour" else LONGEST
    window = time_window(query.start, query.end, longest=longest)
    wanted = find_metric(request, series, metric, query.segment)
    fields: dict[str, object] = {**metric_fields(wanted), "every": every, "figures": None, "buckets": None}
    if every == "none":
        whole = window_statistics(wanted, window.start, window.end)
        fields |= {**window_fields(window, whole), "figures": whole.figures}
    else:
        buckets = statistics_by(wanted, window.start, window.end, every)
        fields |= {**window_fields(window, buckets), "buckets": buckets.buckets}
    return show_item(query, fields, StatisticsOut)
