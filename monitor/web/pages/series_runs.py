"""All runs of a series, by state, in the time range of the page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils import timezone

from monitor.models import Series
from monitor.models.run import ENDED
from monitor.runs.ledger.attribution import outcome_label
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range
from monitor.web.search.run_list import list_runs


@members_only
def page(request: HttpRequest, name: str) -> HttpResponse:
    series = get_object_or_404(Series.objects.visible_to(request.user), name=name)
    now = timezone.now()
    chosen = time_range(request, now)
    state = request.GET.get("state", "")
    state = state if state in ENDED else ""
    number = page_number(request.GET.get("page", ""))
    listed = compute(
        request, "runs", lambda: list_runs(series, chosen.start, chosen.end, state=state, page=number)
    )
    counts = listed.counts if listed else {}
    states = [(each, f"{outcome_label(each)} ({counts.get(each, 0):,})") for each in ENDED]
    context = {
        "series": series,
        "listed": listed,
        "now": now,
        "time_range": chosen,
        "crumbs": [("Series", reverse("series-list")), (series.name, reverse("series", args=[name]))],
        "fields": [FilterField("state", "State", state, [("", "any"), *states])],
    }
    return render(request, "pages/series_runs.html", context)


urlpatterns = [path("series/<slug:name>/runs/", page, name="series-runs")]
