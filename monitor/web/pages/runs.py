"""Runs: a table of what ran, failed and was skipped, with filters, and the causes of the failures in it."""

from __future__ import annotations

import re
from datetime import time
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from monitor.analysis.outcomes.run_list import (
    IN_PROGRESS,
    MOST_COUNTED,
    NOT_PASSED,
    RunFilter,
    causes_of,
    page_of_runs,
    selected_runs,
)
from monitor.analysis.outcomes.run_table import run_table_csv
from monitor.models import FailureSignature, Resource, Site
from monitor.models.run import ENDED
from monitor.runs.ledger.attribution import outcome_label
from monitor.runs.ledger.skip_causes import skip_causes
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range, zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.web.charts.time_range import PageRange

RUNS_A_PAGE = 50
MOST_CAUSES = 10
DEFAULT_RANGE = "24h"
OUTCOMES = (
    ("", "all that ended"),
    (NOT_PASSED, "not passed"),
    *((str(state), outcome_label(state)) for state in ENDED),
    (IN_PROGRESS, "in progress"),
)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show the runs that the query string selects, so that the address is a permalink."""
    now = timezone.now()
    chosen_range = time_range(request, now, default=DEFAULT_RANGE)
    chosen = _filter(request, chosen_range)
    runs = selected_runs(chosen, request.user)

    def listed() -> dict[str, Any]:
        shown, older = page_of_runs(runs, request.GET.get("before", ""), RUNS_A_PAGE)
        skipped = skip_causes(shown, request.user)
        return {
            "runs": [(run, skipped.get(run.pk)) for run in shown],
            "resource_sites": Resource.objects.sites_by_name(run.failed_resource for run in shown),
            "older": older,
        }

    causes, failures = compute(request, "by-cause", lambda: causes_of(runs)) or ([], 0)
    context = {
        **(compute(request, "runs", listed) or {}),
        "time_range": chosen_range,
        "fields": compute(request, "filters", lambda: _fields(request, chosen)),
        "is_filtered": any((chosen.site, chosen.series, chosen.outcome, chosen.stage, chosen.signature)),
        "is_first_page": "before" not in request.GET,
        "causes": causes[:MOST_CAUSES],
        "other_causes": causes[MOST_CAUSES:],
        "failures": failures,
        "most_counted": MOST_COUNTED,
        "chosen": chosen,
        "now": now,
    }
    return render(request, "pages/runs.html", context)


@members_only
@few_at_once
def table(request: HttpRequest) -> HttpResponse:
    """Return the runs that the query string selects as CSV, newest first."""
    now = timezone.now()
    chosen = time_range(request, now, default=DEFAULT_RANGE)
    text = run_table_csv(selected_runs(_filter(request, chosen), request.user))
    name = f"runs-{chosen.file_label}-{now:%Y-%m-%d}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _filter(request: HttpRequest, chosen: PageRange) -> RunFilter:
    def text(name: str) -> str:
        return request.GET.get(name, "").replace("\x00", "").strip()

    outcome = text("outcome")
    return RunFilter(
        end=chosen.end,
        zone=zone(request),
        start=chosen.start,
        site=text("site"),
        series=text("series"),
        outcome=outcome if outcome in dict(OUTCOMES) else "",
        stage=text("stage"),
        signature=text("signature"),
        from_time=_time_of_day(request, "from_time"),
        to_time=_time_of_day(request, "to_time"),
    )


def _time_of_day(request: HttpRequest, name: str) -> time | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    if match := _TIME.fullmatch(text):
        return time(int(match[1]), int(match[2]))
    messages.error(
        request, f"{name}: expected a time of day such as 14:00, got {text[:20]!r}. It is ignored."
    )
    return None


def _fields(request: HttpRequest, chosen: RunFilter) -> Sequence[FilterField]:
    sites = Site.objects.visible_to(request.user).values_list("name", flat=True)
    causes = FailureSignature.objects.order_by("title").values_list("name", "title")
    used = [("", "all"), *causes]
    return [
        FilterField("site", "Site", chosen.site, suggestions=list(sites)),
        FilterField("series", "Series", chosen.series),
        FilterField("outcome", "Outcome", chosen.outcome, options=OUTCOMES),
        FilterField("stage", "Stage", chosen.stage),
        FilterField("signature", "Cause", chosen.signature, options=used),
        FilterField("from_time", "From (time of day)", _shown(chosen.from_time), empty="any"),
        FilterField("to_time", "To (time of day)", _shown(chosen.to_time), empty="any"),
    ]


def _shown(moment: time | None) -> str:
    return f"{moment:%H:%M}" if moment else ""


entries = [NavigationEntry("Failures", "Runs", "runs")]
urlpatterns = [
    path("runs/", page, name="runs"),
    path("runs/runs.csv", table, name="run-table"),
]
