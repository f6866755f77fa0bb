"""Failures: what broke, by cause, time, series, site, path and stage; and the failed runs of one cause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path
from django.utils import timezone

from monitor.failures.attribute import recent
from monitor.failures.breakdown import BreakdownKind, break_down
from monitor.failures.by_hour import HourCount, count_by_hour
from monitor.failures.cause_episodes import episodes_of
from monitor.failures.counts import (
    RANGES,
    FailureCounts,
    FailureRange,
    count_failures,
    judged_runs,
    runs_at_site,
    runs_of,
    runs_of_cause,
)
from monitor.failures.episodes import mean_to_repair
from monitor.failures.kept_results import counted_over
from monitor.failures.repair_times import RepairTimes, repair_times
from monitor.models import Attribution, FailureSignature, Site
from monitor.pages.http.access import members_only
from monitor.pages.http.navigation import NavigationEntry

MOST_RUNS = 100
MOST_EPISODES = 50


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show the causes that the query string selects, so that the address is a permalink."""
    now, range_, site = timezone.now(), _range(request), _site(request)
    runs = judged_runs(runs_at_site(request.user, site), range_, now)
    counted = counted_over(
        runs, request.user, ("causes", range_.key, site), now, lambda: _counted(request, range_, site, now)
    )
    counts, times, by_hour = counted.result
    unknown = sum(cause.runs for cause in counts.causes if cause.signature and cause.signature.is_unknown)
    context = {
        "counts": counts,
        "repair_times": times,
        "by_hour": by_hour,
        "counted_at": counted.at if counted.at < now else None,
        "unknown": unknown,
        "at_fault": recent(Attribution.objects.visible_to(request.user), counts.starts[0], site),
        "range": range_,
        "ranges": RANGES,
        "site": site,
        "sites": Site.objects.values_list("name", flat=True),
        "query": _query(range_, site),
        "kinds": list(BreakdownKind),
        "now": now,
    }
    return render(request, "pages/failures.html", context)


@members_only
def breakdown(request: HttpRequest) -> HttpResponse:
    """Show failures by series, site, path or stage, worst first."""
    now, range_, site, kind = timezone.now(), _range(request), _site(request), _kind(request)
    runs = runs_at_site(request.user, site)
    counted = counted_over(
        judged_runs(runs, range_, now),
        request.user,
        (kind, range_.key, site),
        now,
        lambda: break_down(runs, range_, now, kind),
    )
    context = {
        "breakdown": counted.result,
        "counted_at": counted.at if counted.at < now else None,
        "by": kind,
        "kinds": list(BreakdownKind),
        "range": range_,
        "ranges": RANGES,
        "site": site,
        "sites": Site.objects.values_list("name", flat=True),
        "query": _query(range_, site),
    }
    return render(request, "pages/failure_breakdown.html", context)


@members_only
def cause(request: HttpRequest, name: str) -> HttpResponse:
    """Show one cause: what it is, what helps, and its failed runs."""
    signature = get_object_or_404(FailureSignature, name=name)
    now, range_, site = timezone.now(), _range(request), _site(request)
    runs = runs_of_cause(request.user, site)
    counts = count_failures(runs.filter(signature=signature), range_, now)
    episodes = episodes_of(runs, signature, counts.starts[0], now)
    context = {
        "signature": signature,
        "count": counts.causes[0] if counts.causes else None,
        "counts": counts,
        "to_repair": mean_to_repair(each.episode for each in episodes),
        "repaired": sum(each.episode.is_repaired for each in episodes),
        "episodes": [(each, each.seconds(now)) for each in episodes[:MOST_EPISODES]],
        "more_episodes": max(len(episodes) - MOST_EPISODES, 0),
        "runs": runs_of(runs, signature, counts.starts[0], MOST_RUNS),
        "most_runs": MOST_RUNS,
        "range": range_,
        "ranges": RANGES,
        "site": site,
        "now": now,
    }
    return render(request, "pages/failure.html", context)


def _counted(
    request: HttpRequest, range_: FailureRange, site: str, now: datetime
) -> tuple[FailureCounts, RepairTimes, Sequence[Sequence[HourCount]]]:
    runs = runs_at_site(request.user, site)
    judged, counts = judged_runs(runs, range_, now), count_failures(runs, range_, now)
    return counts, repair_times(judged), count_by_hour(judged) if counts.causes else ()


def _range(request: HttpRequest) -> FailureRange:
    return next((each for each in RANGES if each.key == request.GET.get("range")), RANGES[1])


def _site(request: HttpRequest) -> str:
    return request.GET.get("site", "").replace("\x00", "")


def _kind(request: HttpRequest) -> BreakdownKind:
    by = request.GET.get("by")
    return BreakdownKind(by) if by in set(BreakdownKind) else BreakdownKind.SERIES


def _query(range_: FailureRange, site: str) -> str:
    return urlencode({name: value for name, value in (("site", site), ("range", range_.key)) if value})


entries = [
    NavigationEntry("Failures", "Causes", "failures", pages=("failure",)),
    NavigationEntry("Failures", "By series, site and path", "failure_breakdown"),
]
urlpatterns = [
    path("failures/", page, name="failures"),
    path("failures/breakdown/", breakdown, name="failure_breakdown"),
    path("failures/causes/<slug:name>/", cause, name="failure"),
]
