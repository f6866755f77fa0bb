"""The list of sites."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from monitor.web.pages.http.access import members_only, wants_part
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.places import site_list

_STATES = (
    ("", "any"),
    (site_list.FAILING, "failing"),
    (site_list.HELD, "paused"),
    (site_list.MAINTENANCE, "in maintenance"),
)
_ORDERS = ((site_list.WORST, "worst first"), (site_list.BY_NAME, "name"))


@members_only
@live
def page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    text, state, order = (request.GET.get(name, "").replace("\x00", "") for name in ("q", "state", "order"))
    state = state if state in site_list.FILTERS else ""
    order = order if order in site_list.ORDERS else site_list.WORST
    number = page_number(request.GET.get("page", ""))
    shown = compute(
        request,
        "sites",
        lambda: site_list.list_sites(
            request.user, now, text=text.strip(), state=state, order=order, page=number
        ),
    )
    lines = shown.lines if shown else ()
    digest = digest_of(
        [(line.site.name, line.state, line.failing, line.totals, _days(line)) for line in lines]
    )
    if is_current(request, digest):
        return HttpResponse(status=204)
    context = {
        "sites": shown,
        "fields": [
            FilterField("q", "Name or title", text),
            FilterField("state", "State", state, options=_STATES),
            FilterField("order", "Sort", order, options=_ORDERS),
        ],
        "is_filtered": bool(text or state),
        "digest": digest,
        "now": now,
    }
    return render(request, "parts/sites.html" if wants_part(request) else "pages/sites.html", context)


def _days(line: site_list.ListedSite) -> list[tuple[int, int]]:
    days = line.month.days if line.month else ()
    return [(day.up_seconds, day.down_seconds) for day in days if day]


entries = [NavigationEntry("Sites", "Sites", "sites", pages=("site", "site-edit", "resource"))]
urlpatterns = [path("sites/", page, name="sites")]
