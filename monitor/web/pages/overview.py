"""The overview: sites by series; with many series, sites by suite or probe, and filtered lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone

import probes
from monitor.models import Suite
from monitor.models.role import reads_measurements
from monitor.models.run import ENDED
from monitor.web.matrix import matrix
from monitor.web.pages.http.access import accounts_only, wants_part
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import default_filters
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.search import series_list
from monitor.web.search.series_list import SeriesChoice
from monitor.web.status.incidents import NO_INCIDENTS, CurrentIncidents, IncidentsOf, current_incidents

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

FILTERS = ("text", "site", "suite", "probe", "state", "category", "order")
STATES = (series_list.NOT_WORKING, *ENDED)
ORDER_LABELS = {
    series_list.WORST: "worst first",
    series_list.BY_NAME: "by name",
    series_list.OLDEST: "oldest first",
}


@accounts_only
@live
def page(request: HttpRequest) -> HttpResponse:
    """Show the overview; send a user whose roles permit forecasts only to its tokens."""
    if not reads_measurements(request.user):
        return redirect("tokens")
    now = timezone.now()
    context = _context(request, now)
    # A list says nothing of incidents, but is shown below them.
    is_list = context["is_list"]
    digest = digest_of([context["overview"], context["incidents"]] if is_list else context["overview"])
    if is_current(request, digest):
        return HttpResponse(status=204)
    is_part = wants_part(request)
    template = "parts/overview_update.html" if is_part else "pages/overview.html"
    return render(request, template, {**context, "digest": digest, "now": now, "is_update": is_part})


def _context(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """Return a list if its filters say so, otherwise the overview by series, or by suite or probe."""
    query = {name: request.GET.get(name, "").replace("\x00", "").strip() for name in FILTERS}
    defaults = default_filters(request)
    query |= defaults
    if query["state"] not in STATES:
        query["state"] = ""
    user, is_of_series = request.user, matrix.has_column_per_series(request.user)
    names = ("text", "site", "probe", "state", "category", *(["suite"] if is_of_series else []))
    is_list = any(query[name] for name in names)
    orders = series_list.ORDERS if is_list else matrix.ORDERS
    if query["order"] not in orders:
        query["order"] = orders[0]
    chosen = SeriesChoice(**{name: query[name] for name in FILTERS if name != "order"})
    order, number = query["order"], page_number(request.GET.get("page", ""))
    incidents_of = _incidents_of(request)

    def content_of() -> Any:
        if is_list:
            return series_list.list_series(user, now, chosen, order=order, page=number)
        if is_of_series:
            return matrix.overview_of_series(user, now, order=order, incidents_of=incidents_of)
        return matrix.overview_of_groups(
            user, now, suite=chosen.suite, order=order, page=number, incidents_of=incidents_of
        )

    content = compute(request, "overview", content_of)
    return {
        "part": "parts/series_list.html" if is_list else "parts/overview.html",
        "is_list": is_list,
        "overview": content,
        "incidents": incidents_of(user, now) if is_list or content is None else content.incidents,
        "chosen": chosen,
        "defaults": defaults,
        "fields": compute(
            request, "filters", lambda: _fields(query, orders, request, getattr(content, "site_names", ()))
        ),
        "query": urlencode({name: value for name, value in query.items() if value}),
    }


def _incidents_of(request: HttpRequest) -> IncidentsOf:
    """Return ``current_incidents`` as a part of the page: the overview is shown without them if it fails."""

    def guarded(
        user: AbstractBaseUser | AnonymousUser, now: datetime, failing: Collection[int] = (), /
    ) -> CurrentIncidents:
        incidents = compute(request, "incidents", lambda: current_incidents(user, now, failing))
        return NO_INCIDENTS if incidents is None else incidents

    return guarded


def _fields(
    query: Mapping[str, str], orders: Sequence[str], request: HttpRequest, sites: Sequence[str]
) -> list[FilterField]:
    suites = Suite.objects.visible_to(request.user).order_by("sort_name").only("name", "title")
    states = [(state, "failing" if state == series_list.NOT_WORKING else _words(state)) for state in STATES]
    options = {
        "suite": [("", "all"), *((suite.name, suite.title or suite.name) for suite in suites)],
        "probe": [("", "all"), *((name, name) for name in probes.names())],
        "state": [("", "any"), *states],
        "category": [("", "any"), *((name, name) for name in probes.CATEGORIES)],
        "order": [(order, ORDER_LABELS[order]) for order in orders],
    }
    labels = {"text": "Name contains", "category": "Failed in", "order": "Sort"}
    return [
        FilterField(
            name,
            labels.get(name, name.capitalize()),
            query[name],
            options=options.get(name, ()),
            suggestions=sites if name == "site" else (),
        )
        for name in FILTERS
    ]


def _words(state: str) -> str:
    return state.replace("_", " ")


entries = [NavigationEntry("Status", "Overview", "overview")]
urlpatterns = [path("", page, name="overview")]
