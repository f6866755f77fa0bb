"""Parameters of queries about measured values: the series, the metric and the time window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import F
from django.utils import timezone

from monitor.depot.samples.read import newest_time
from monitor.models import Metric, Series
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest

USUAL = timedelta(days=30)
LONGEST = timedelta(days=20_000)  # 20,000 daily rollups are read in milliseconds
EARLIEST_YEAR, LATEST_YEAR = 1900, 2200


@dataclass(frozen=True)
class TimeWindow:
    """From *start* until before *end*, UTC; *now* is the time of the request."""

    start: datetime
    end: datetime
    now: datetime


def time_window(start: datetime | None, end: datetime | None, *, longest: timedelta = LONGEST) -> TimeWindow:
    """Return the requested window; by default the last 30 days.

    Raises:
        Refused: the window is empty, or longer than *longest*.
    """
    now = timezone.now()
    since, until = checked_period(start, end or now)
    until = until or now
    since = since or until - min(USUAL, longest)
    if until - since > longest:
        raise Refused(
            422, "window_too_long", f"expected {longest.days} days or fewer, got {(until - since).days}"
        )
    return TimeWindow(since, until, now)


def checked_period(start: datetime | None, end: datetime | None) -> tuple[datetime | None, datetime | None]:
    """Return both times in UTC. Raises Refused unless *start* lies before *end*."""
    since, until = in_utc("start", start), in_utc("end", end)
    if since and until and since >= until:
        raise Refused(422, "empty_window", f"start: expected a time before {until.isoformat()}, the end")
    return since, until


def in_utc(name: str, time: datetime | None) -> datetime | None:
    """Return *time* in UTC. Raises Refused for years whose arithmetic could overflow."""
    if time is not None and not EARLIEST_YEAR <= time.year <= LATEST_YEAR:
        years = f"{EARLIEST_YEAR} to {LATEST_YEAR}"
        raise Refused(422, "invalid", f"{name}: expected a time of the years {years}, got {time.isoformat()}")
    return time.astimezone(UTC) if time else None


def find_metric(request: HttpRequest, series: str, metric: str, segment: int | None) -> Metric:
    """Return the metric in one *segment* of *series*; by default in the segment that ran last."""
    metrics = Metric.objects.named(series, metric)
    if metrics:
        visible = Series.objects.visible_to(request.user)
        metrics = metrics if visible.filter(pk=metrics[0].segment.series_id).exists() else []
    if segment is not None:
        metrics = [candidate for candidate in metrics if candidate.segment.number == segment]
    if not metrics:
        raise _no_metric(request, series, metric, segment)
    if len(metrics) == 1:
        return metrics[0]
    by_newest = Metric.objects.filter(pk__in=[m.pk for m in metrics]).annotate(newest=newest_time())
    return by_newest.select_related("segment__series").order_by(
        F("newest").desc(nulls_last=True), "-segment__number"
    )[0]


def find_series(request: HttpRequest, name: str) -> Series:
    series = Series.objects.visible_to(request.user).filter(name=name).first()
    if series is None:
        raise Refused(404, "unknown_series", f"there is no series {name!r} that you may see")
    return series


def _no_metric(request: HttpRequest, name: str, metric: str, segment: int | None) -> Refused:
    series = find_series(request, name)
    names = sorted(set(Metric.objects.filter(segment__series=series).values_list("name", flat=True)))
    if metric not in names:
        return Refused(404, "unknown_metric", f"series {name!r} has no metric {metric!r}", known=names)
    in_segments = Metric.objects.filter(segment__series=series, name=metric)
    numbers = in_segments.order_by("segment__number").values_list("segment__number", flat=True)
    detail = f"segment {segment} of series {name!r} has no metric {metric!r}"
    return Refused(404, "unknown_segment", detail, known=list(numbers))
