"""The overview: sites by series; with many series, sites by suite or probe, and filtered lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone

from monitor.models import Suite
from monitor.models.role import reads_measurements
from monitor.models.run import ENDED
from monitor.overview import matrix, series_list
from monitor.pages.http.access import accounts_only, wants_part
from monitor.pages.http.navigation import NavigationEntry
from monitor.pages.http.paging import page_number
from monitor.pages.http.updates import digest_of, is_current, live

if TYPE_CHECKING:
    from datetime import datetime

FILTERS = ("site", "suite", "state", "order")
STATES = (series_list.NOT_WORKING, *ENDED)


@accounts_only
@live
def page(request: HttpRequest) -> HttpResponse:
    """Show the overview; send a user whose roles permit forecasts only to its tokens."""
    if not reads_measurements(request.user):
        return redirect("tokens")
    now = timezone.now()
    context = _series_context(request, now) or _filtered_context(request, now)
    digest = digest_of(context["overview"])
    if is_current(request, digest):
        return HttpResponse(status=204)
    template = context["part"] if wants_part(request) else "pages/overview.html"
    return render(request, template, {**context, "digest": digest, "now": now})


def _series_context(request: HttpRequest, now: datetime) -> dict[str, Any] | None:
    """Return the overview with a column per series, without filters; None if there are too many series."""
    if not matrix.has_column_per_series(request.user):
        return None
    content = matrix.overview_of_series(request.user, now)
    return {"part": "parts/overview.html", "overview": content}


def _filtered_context(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """Return a list if a site or a state is requested, otherwise the overview by suite or probe."""
    query = {name: request.GET.get(name, "").replace("\x00", "") for name in FILTERS}
    if query["state"] not in STATES:
        query["state"] = ""
    is_list = bool(query["site"] or query["state"])
    orders = series_list.ORDERS if is_list else matrix.ORDERS
    if query["order"] not in orders:
        query["order"] = orders[0]
    chosen = series_list.SeriesChoice(query["site"], query["suite"], query["state"])
    order, number = query["order"], page_number(request.GET.get("page", ""))
    user = request.user
    return {
        "part": "parts/series_list.html" if is_list else "parts/overview.html",
        "overview": series_list.list_series(user, now, chosen, order=order, page=number)
        if is_list
        else matrix.overview_of_groups(user, now, suite=chosen.suite, order=order, page=number),
        "chosen": chosen,
        "order": order,
        "orders": orders,
        "states": STATES,
        "suites": Suite.objects.visible_to(user).order_by("name"),
        "query": urlencode({name: value for name, value in query.items() if value}),
    }


entries = [NavigationEntry("Status", "Overview", "overview")]
urlpatterns = [path("", page, name="overview")]
