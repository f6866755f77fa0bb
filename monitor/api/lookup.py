"""What questions about values have in common: which metric, and which stretch of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import F
from django.utils import timezone

from monitor.api.problems import Refused
from monitor.depot.samples.read import newest_time
from monitor.models import Metric, Series

if TYPE_CHECKING:
    from django.http import HttpRequest

USUAL = timedelta(days=30)
LONGEST = timedelta(days=20_000)  # what is rolled up by days is read in a moment
EARLIEST_YEAR, LATEST_YEAR = 1900, 2200


@dataclass(frozen=True)
class Window:
    """From *start* until before *end*, UTC; asked about at *now*."""

    start: datetime
    end: datetime
    now: datetime


def window(start: datetime | None, end: datetime | None, *, longest: timedelta = LONGEST) -> Window:
    """By default what ends now, and is 30 days long. Refused: an end that is not after the start, and more
    than *longest*."""
    now = timezone.now()
    since, until = checked(start, end or now)
    until = until or now
    since = since or until - min(USUAL, longest)
    if until - since > longest:
        raise Refused(
            422, "window_too_long", f"expected {longest.days} days or fewer, got {(until - since).days}"
        )
    return Window(since, until, now)


def checked(start: datetime | None, end: datetime | None) -> tuple[datetime | None, datetime | None]:
    """Both in UTC. Refused: an end that is not after the start."""
    since, until = in_utc("start", start), in_utc("end", end)
    if since and until and since >= until:
        raise Refused(422, "empty_window", f"start: expected a time before {until.isoformat()}, the end")
    return since, until


def in_utc(name: str, time: datetime | None) -> datetime | None:
    """*time* in UTC. Refused: what is so long ago, or so far away, that nothing can be reckoned with it."""
    if time is not None and not EARLIEST_YEAR <= time.year <= LATEST_YEAR:
        years = f"{EARLIEST_YEAR} to {LATEST_YEAR}"
        raise Refused(422, "invalid", f"{name}: expected a time of the years {years}, got {time.isoformat()}")
    return time.astimezone(UTC) if time else None


def find_metric(request: HttpRequest, series: str, metric: str, segment: int | None) -> Metric:
    """The metric of one *segment* of *series*: unless one is named of that which ran last."""
    found = Metric.objects.named(series, metric)
    if found and not Series.objects.visible_to(request.user).filter(pk=found[0].segment.series_id).exists():
        found = []
    if segment is not None:
        found = [one for one in found if one.segment.number == segment]
    if not found:
        raise _not_there(request, series, metric, segment)
    if len(found) == 1:
        return found[0]
    latest = Metric.objects.filter(pk__in=[one.pk for one in found]).annotate(newest=newest_time())
    return latest.select_related("segment__series").order_by(
        F("newest").desc(nulls_last=True), "-segment__number"
    )[0]


def find_series(request: HttpRequest, name: str) -> Series:
    found = Series.objects.visible_to(request.user).filter(name=name).first()
    if found is None:
        raise Refused(404, "unknown_series", f"there is no series {name!r} that you may see")
    return found


def _not_there(request: HttpRequest, series: str, metric: str, segment: int | None) -> Refused:
    there = find_series(request, series)
    known = sorted(set(Metric.objects.filter(segment__series=there).values_list("name", flat=True)))
    if metric not in known:
        return Refused(404, "unknown_metric", f"series {series!r} has no metric {metric!r}", known=known)
    said = f"segment {segment} of series {series!r} has no metric {metric!r}"
    of_others = Metric.objects.filter(segment__series=there, name=metric)
    numbers = of_others.order_by("segment__number").values_list("segment__number", flat=True)
    return Refused(404, "unknown_segment", said, known=list(numbers))
