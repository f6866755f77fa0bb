"""Failures: what broke, by cause, time, series, site, path and stage; and the failed runs of one cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path
from django.utils import timezone

from monitor.analysis.attribution.attribute import recent
from monitor.analysis.outcomes.breakdown import BreakdownKind, break_down
from monitor.analysis.outcomes.by_hour import clock_of, count_by_hour
from monitor.analysis.outcomes.cause_episodes import episodes_of
from monitor.analysis.outcomes.counts import (
    FailureRange,
    count_failures,
    failure_range,
    outcomes_in,
    runs_at_site,
    runs_of,
)
from monitor.analysis.outcomes.episodes import mean_to_repair
from monitor.analysis.outcomes.repair_times import repair_times
from monitor.models import Attribution, FailureSignature, Resource, Site
from monitor.web.charts.week_table import hour_rows
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range, zone, zone_name

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.analysis.outcomes.read import RunOutcomes
    from monitor.web.charts.time_range import PageRange

DAY = timedelta(days=1)
MOST_RUNS = 100
MOST_EPISODES = 50
MOST_AT_FAULT = 50


@dataclass(frozen=True)
class _Selection:
    """What the query string selects: a time range, its intervals, and a site (empty: all)."""

    chosen: PageRange
    intervals: FailureRange
    site: str

    @property
    def end(self) -> datetime:
        return self.chosen.end

    @property
    def begin(self) -> datetime:
        return self.intervals.begin(self.end)

    def outcomes(self, request: HttpRequest) -> RunOutcomes:
        return outcomes_in(self.intervals, self.end, request.user, self.site)

    def context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what every page of failures needs."""

        def filters() -> list[FilterField]:
            visible = Site.objects.visible_to(request.user).order_by("sort_name")
            names = list(visible.values_list("name", flat=True))
            return [FilterField("site", "Site", self.site, suggestions=names)]

        return {
            "time_range": self.chosen,
            "interval_label": self.intervals.interval_label,
            "is_cut": self.chosen.start is None,
            "site": self.site,
            "fields": compute(request, "filters", filters),
            "query": urlencode({**self.chosen.query, **({"site": self.site} if self.site else {})}),
            "kinds": list(BreakdownKind),
        }


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show the causes that the query string selects, so that the address is a permalink."""
    now = timezone.now()
    selected = _selection(request, now)
    clock = clock_of(zone(request), selected.begin, selected.end)

    def counted() -> dict[str, Any]:
        outcomes = selected.outcomes(request)
        counts = count_failures(outcomes, selected.intervals, selected.end)
        by_hour = compute(request, "hours", lambda: count_by_hour(outcomes, clock) if counts.causes else ())
        unknown = sum(cause.runs for cause in counts.causes if cause.signature and cause.signature.is_unknown)
        return {
            "counts": counts,
            "repair_times": compute(request, "figures", lambda: repair_times(outcomes)),
            "by_hour": by_hour,
            "hour_rows": hour_rows(by_hour or ()),
            "unknown": unknown,
        }

    visible = Attribution.objects.visible_to(request.user)
    recent_rows = recent(visible, selected.begin, selected.site)[: MOST_AT_FAULT + 1]
    at_fault = compute(request, "at-fault", lambda: list(recent_rows)) or []
    context = {
        **selected.context(request),
        **(compute(request, "counts", counted) or {}),
        "clock_name": "UTC" if clock is UTC else zone_name(request),
        "hour_columns": ("Weekday", "Hour", "Failed", "Runs"),
        "at_fault": at_fault[:MOST_AT_FAULT],
        "has_more_at_fault": len(at_fault) > MOST_AT_FAULT,
        "now": now,
    }
    return render(request, "pages/failures.html", context)


@members_only
def breakdown(request: HttpRequest) -> HttpResponse:
    """Show failures by series, site, path or stage, worst first."""
    now = timezone.now()
    selected, kind = _selection(request, now), _kind(request)
    broken_down = compute(request, "rows", lambda: break_down(selected.outcomes(request), kind))
    context = {**selected.context(request), "breakdown": broken_down, "by": kind}
    return render(request, "pages/failure_breakdown.html", context)


@members_only
def cause(request: HttpRequest, name: str) -> HttpResponse:
    """Show one cause: what it is, what helps, and its failed runs."""
    signature = get_object_or_404(FailureSignature, name=name)
    now = timezone.now()
    selected = _selection(request, now)

    def counted() -> dict[str, Any]:
        outcomes = selected.outcomes(request)
        counts = count_failures(outcomes, selected.intervals, selected.end, signature)
        count = counts.causes[0] if counts.causes else None
        rows = zip(counts.starts, count.by_interval, strict=True) if count else ()
        return {
            "count": count,
            "counts": counts,
            "interval_rows": [(start, runs) for start, runs in rows if runs],
            **(
                (compute(request, "episodes", lambda: _episodes(outcomes, signature, now)) if count else None)
                or {}
            ),
        }

    def failed_runs() -> dict[str, Any]:
        at_site = runs_at_site(request.user, selected.site)
        runs = runs_of(at_site, signature, selected.begin, selected.end, MOST_RUNS)
        sites = Resource.objects.sites_by_name(run.failed_resource for run in runs)
        return {"runs": runs, "resource_sites": sites}

    counts = compute(request, "counts", counted)
    has_failures = counts is None or counts["count"] is not None
    context = {
        **selected.context(request),
        **(counts or {}),
        **((compute(request, "runs", failed_runs) if has_failures else None) or {}),
        "crumbs": crumbs_of("failures"),
        "signature": signature,
        "interval_columns": ("From", "Failed runs"),
        "most_runs": MOST_RUNS,
        "now": now,
    }
    return render(request, "pages/failure.html", context)


def _episodes(outcomes: RunOutcomes, signature: FailureSignature, now: datetime) -> dict[str, Any]:
    """Return the context of the episodes of the failures by *signature*, newest first."""
    episodes = episodes_of(outcomes, signature, now)
    return {
        "to_repair": mean_to_repair(each.episode for each in episodes),
        "repaired": sum(each.episode.is_repaired for each in episodes),
        "episodes": [(each, each.seconds(now)) for each in episodes[:MOST_EPISODES]],
        "more_episodes": max(len(episodes) - MOST_EPISODES, 0),
    }


def _selection(request: HttpRequest, now: datetime) -> _Selection:
    chosen = time_range(request, now)
    start = chosen.start
    if (
        start and chosen.is_relative and chosen.end - start > DAY
    ):  # begins with a whole hour, which is counted
        start = start.replace(minute=0, second=0, microsecond=0)
    site = request.GET.get("site", "").replace("\x00", "")
    return _Selection(chosen, failure_range(start, chosen.end), site)


def _kind(request: HttpRequest) -> BreakdownKind:
    by = request.GET.get("by")
    return BreakdownKind(by) if by in set(BreakdownKind) else BreakdownKind.SERIES


entries = [
    NavigationEntry("Failures", "Causes", "failures", pages=("failure",)),
    NavigationEntry("Failures", "By series, site and path", "failure_breakdown"),
]
urlpatterns = [
    path("failures/", page, name="failures"),
    path("failures/breakdown/", breakdown, name="failure_breakdown"),
    path("failures/causes/<slug:name>/", cause, name="failure"),
]
