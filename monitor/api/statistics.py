"""What a metric came to: over all of a stretch of time, or hour by hour, day by day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from ninja import Router, Schema
from pydantic import AwareDatetime

from monitor.api.answers import MetricOut, WindowOut, answer, of_metric, of_window
from monitor.api.lookup import LONGEST, Window, find_metric, window
from monitor.depot.rollups import statistics as service

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.models import Metric

router = Router()
LONGEST_BY_HOUR = timedelta(days=400)


class Figures(Schema):
    """*n* counts values, *passed* those of passed runs; all else is of these. Null where there is none."""

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
    """*figures* are of the whole window; if *every* is not ``none`` there are *buckets* instead, without
    those that have no value."""

    every: str
    figures: Figures | None
    buckets: list[Bucket] | None


@router.get("/{name}/metrics/{metric}/statistics", response=StatisticsOut, summary="What a metric came to")
def statistics(
    request: HttpRequest,
    name: str,
    metric: str,
    start: AwareDatetime | None = None,
    end: AwareDatetime | None = None,
    every: Literal["none", "hour", "day", "week", "month", "year"] = "none",
    segment: int | None = None,
) -> HttpResponse:
    """From *start* until before *end* (by default the last 30 days), of the segment that ran last, unless you
    name another. Quantiles are within 1 %, all else is exact; weeks begin on Monday, everything in UTC."""
    asked = window(start, end, longest=LONGEST_BY_HOUR if every == "hour" else LONGEST)
    wanted = find_metric(request, name, metric, segment)
    told = _whole(wanted, asked) if every == "none" else _by(wanted, asked, every)
    return answer({**of_metric(wanted), "every": every, **told})


def _whole(metric: Metric, asked: Window) -> dict[str, object]:
    found = service.statistics(metric, asked.start, asked.end)
    return {**of_window(asked, found), "figures": found.figures, "buckets": None}


def _by(metric: Metric, asked: Window, every: service.Every) -> dict[str, object]:
    found = service.statistics_by(metric, asked.start, asked.end, every)
    return {**of_window(asked, found), "figures": None, "buckets": found.buckets}
