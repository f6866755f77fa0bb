"""The schedule: what each resource runs in the next or the last 24 hours, and what ran at a given time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone

from monitor.core.csvfile import to_csv
from monitor.models import Binding
from monitor.runs.ledger.schedule import (
    DAY,
    STEP,
    STEPS,
    ResourceDay,
    RunKind,
    days_of_resources,
    runs_at,
    visible_resources,
)
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.charts.day_timeline import day_timeline
from monitor.web.charts.time_range import InvalidRange, page_time
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import zone

if TYPE_CHECKING:
    from monitor.models import Resource
    from monitor.models.site import ResourceQuerySet

LEAST_A_PAGE, MOST_A_PAGE = 5, 30  # resources
SERIES_A_PAGE = 1000  # about so many: their runs of a day are counted for each request
NEXT, LAST = "next", "last"
VIEWS = ((NEXT, "Next 24 h"), (LAST, "Last 24 h"))
LABEL_EVERY = 3  # hours


@dataclass(frozen=True)
class ShownDay:
    """The 24 hours of the page. *at*: the time of the line; *is_asked*: whether the reader asked for it."""

    view: str
    start: datetime
    at: datetime
    is_asked: bool

    @property
    def end(self) -> datetime:
        return self.start + DAY

    @property
    def hours(self) -> list[datetime]:
        return [self.start + timedelta(hours=hour) for hour in range(24)]


@members_only
def page(request: HttpRequest) -> HttpResponse:
    now, error = timezone.now(), ""
    try:
        shown = _shown_day(request, now)
    except InvalidRange as problem:
        error, shown = str(problem), _around(NEXT, now, now)
    clock = zone(request)
    context = {
        **(compute(request, "timeline", lambda: _days(request, shown)) or {}),
        "shown": shown,
        "views": VIEWS,
        "text": _text(request),
        "submitted_at": request.GET.get("at", ""),
        "labels": [(time, f"{time.astimezone(clock):%H:%M}") for time in shown.hours[::LABEL_EVERY]],
        "columns": ["Resource", *(f"{time.astimezone(clock):%H:%M}" for time in shown.hours)],
        "error": error,
        "download_url": f"{reverse('schedule-table')}?{request.GET.urlencode()}",
    }
    return render(request, "pages/schedule.html", context, status=400 if error else 200)


def _days(request: HttpRequest, shown: ShownDay) -> dict[str, Any]:
    """Return the context of the days of the page of resources that the query string selects."""
    resources, number, pages = _resources(request)
    days = days_of_resources(request.user, resources, shown.start)
    return {
        "days": [(day, day_timeline(day, shown.start, shown.at)) for day in days],
        "rows": [_row(day) for day in days],
        "exclusives": sorted({run for day in days for run in day.exclusives}, key=lambda run: run.starts_at),
        "closures": [(day, closure) for day in days for closure in day.closures],
        "runs": compute(request, "at", lambda: runs_at(request.user, resources, shown.at))
        if shown.is_asked
        else None,
        "page": number,
        "pages": pages,
    }


@members_only
@few_at_once
def table(request: HttpRequest) -> HttpResponse:
    """Download the counts of the timelines that the page shows, as CSV."""
    now = timezone.now()
    try:
        shown = _shown_day(request, now)
    except InvalidRange as problem:
        return HttpResponse(str(problem), status=400, content_type="text/plain; charset=utf-8")
    resources, _, _ = _resources(request)
    header = ["site", "resource", "start", *RunKind]
    rows = [
        [
            day.site,
            day.name,
            (shown.start + step * STEP).isoformat(),
            *(counts.get(kind, 0) for kind in RunKind),
        ]
        for day in days_of_resources(request.user, resources, shown.start)
        for step, counts in enumerate(day.counts)
        if counts
    ]
    headers = {"Content-Disposition": f'attachment; filename="schedule-{shown.start:%Y%m%dT%H%M}.csv"'}
    return HttpResponse(to_csv([header, *rows]), content_type="text/csv; charset=utf-8", headers=headers)


def _text(request: HttpRequest) -> str:
    return request.GET.get("text", "").replace("\x00", "").strip()


def _shown_day(request: HttpRequest, now: datetime) -> ShownDay:
    at = page_time("at", request.GET.get("at", ""), zone(request))
    if at is not None:
        return ShownDay("", _floor(at - DAY / 2), at, is_asked=True)
    return _around(LAST if request.GET.get("view") == LAST else NEXT, now, now)


def _around(view: str, at: datetime, now: datetime) -> ShownDay:
    start = _floor(now) if view == NEXT else _floor(now) + STEP - DAY
    return ShownDay(view, start, at, is_asked=False)


def _floor(time: datetime) -> datetime:
    return time.astimezone(UTC) - (time - datetime.min.replace(tzinfo=UTC)) % STEP


def _resources(request: HttpRequest) -> tuple[Sequence[Resource], int, int]:
    """Return the resources of the page, its number, and the number of pages."""
    found = visible_resources(request.user, _text(request))
    size = _page_size(found)
    pages = max(-(-found.count() // size), 1)
    number = min(max(page_number(request.GET.get("page", "")), 1), pages)
    return list(found[(number - 1) * size : number * size]), number, pages


def _page_size(resources: ResourceQuerySet) -> int:
    """Return how many of *resources* a page shows, by the number of series of the first ones."""
    first = list(resources.values_list("pk", flat=True)[:MOST_A_PAGE])
    bindings = Binding.objects.filter(resource__in=first).order_by().count()
    return min(max(SERIES_A_PAGE * len(first) // max(bindings, 1), LEAST_A_PAGE), MOST_A_PAGE)


def _row(day: ResourceDay) -> list[str]:
    per_hour = STEPS // 24
    return [day.name, *(_cell(day, first, first + per_hour) for first in range(0, STEPS, per_hour))]


def _cell(day: ResourceDay, first: int, end: int) -> str:
    """Return the runs of an hour in words: ``12, 2 failed``; empty without any."""
    counts = {kind: day.total(kind, first, end) for kind in RunKind}
    others = [f"{counts[kind]} {kind}" for kind in RunKind if counts[kind] and kind != RunKind.PASSED]
    whole = sum(counts.values())
    return ", ".join([str(whole), *others]) if whole else ""


entries = [NavigationEntry("Operations", "Schedule", "schedule")]
urlpatterns = [
    path("schedule/", page, name="schedule"),
    path("schedule.csv", table, name="schedule-table"),
]
