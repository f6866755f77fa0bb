"""The list of all series, searched and filtered."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

import probes
from monitor.models import Reporter, Suite
from monitor.models.run import ENDED
from monitor.runs.ledger.attribution import outcome_label
from monitor.web.pages.http.access import members_only, wants_part
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import default_filters
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.search.series_list import BY_NAME, NOT_WORKING, ORDERS, SeriesChoice, list_series

FILTERS = ("text", "site", "suite", "probe", "kind", "reporter", "state", "category", "order")
STATES: dict[str, str] = {NOT_WORKING: "failing", **{str(each): outcome_label(each) for each in ENDED}}
KINDS = {"application": "applications", "grid": "grid probes"}
MOST_SUGGESTED = 500  # reporters
ORDER_LABELS = {"worst": "worst first", "name": "by name", "oldest": "oldest first"}


@members_only
@live
def page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    query = {name: request.GET.get(name, "").replace("\x00", "") for name in FILTERS}
    query |= (defaults := default_filters(request))
    order = query.pop("order")
    order = order if order in ORDERS else BY_NAME
    for name, known in (("state", STATES), ("kind", KINDS), ("category", probes.CATEGORIES)):
        query[name] = query[name] if query[name] in known else ""
    chosen = SeriesChoice(**query)
    number = page_number(request.GET.get("page", ""))
    listed = compute(
        request, "series-lines", lambda: list_series(request.user, now, chosen, order=order, page=number)
    )
    digest = digest_of(listed)
    if is_current(request, digest):
        return HttpResponse(status=204)
    context = {
        "overview": listed,
        "defaults": defaults,
        "is_filtered": chosen != SeriesChoice(),
        "digest": digest,
        "now": now,
    }
    if wants_part(request):
        return render(request, "parts/series_lines.html", context)
    fields = compute(request, "filters", lambda: _fields(request, chosen, order))
    return render(request, "pages/series_list.html", {**context, "fields": fields})


def _fields(request: HttpRequest, chosen: SeriesChoice, order: str) -> list[FilterField]:
    suites = Suite.objects.visible_to(request.user).order_by("sort_name")
    reporters = Reporter.objects.manageable_or_visible_to(request.user).order_by("sort_name")
    names = list(reporters.values_list("name", flat=True)[:MOST_SUGGESTED])
    return [
        FilterField("text", "Name", chosen.text),
        FilterField("site", "Site", chosen.site),
        FilterField(
            "suite",
            "Suite",
            chosen.suite,
            [("", "all"), *((each.name, each.title or each.name) for each in suites)],
        ),
        FilterField("probe", "Probe", chosen.probe, suggestions=probes.names()),
        FilterField("kind", "Kind", chosen.kind, [("", "all"), *KINDS.items()]),
        FilterField("reporter", "Reporter", chosen.reporter, suggestions=names),
        FilterField("state", "State", chosen.state, [("", "any"), *STATES.items()]),
        FilterField(
            "category",
            "Failing in",
            chosen.category,
            [("", "any stage"), *((each, each) for each in probes.CATEGORIES)],
        ),
        FilterField("order", "Sort", order, [(each, ORDER_LABELS[each]) for each in ORDERS]),
    ]


entries = [
    NavigationEntry(
        "Series", "Series", "series-list", pages=("series", "series-patterns", "series-runs", "run")
    ),
]
urlpatterns = [path("series/", page, name="series-list")]
