"""The overview: every series at every site; where they are many, how many of them work, and lists of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from monitor.models import Suite
from monitor.models.run import ENDED
from monitor.overview import series_list, site_matrix
from monitor.overview.grid import is_small, overview
from monitor.pages.access import members_only, wants_part

if TYPE_CHECKING:
    from datetime import datetime

ASKED = ("site", "suite", "state", "order")
STATES = (series_list.NOT_WORKING, *ENDED)


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """The page, or its grid alone; nothing at all (204) when a reader has seen the newest already."""
    now = timezone.now()
    context = _of_few(request, now) if is_small(request.user) else _of_many(request, now)
    if wants_part(request) and request.GET.get("seen") == context["overview"].digest:
        return HttpResponse(status=204)
    template = context["part"] if wants_part(request) else "pages/overview.html"
    return render(request, template, {**context, "now": now})


def _of_few(request: HttpRequest, now: datetime) -> dict[str, Any]:
    content = overview(request.user, now)
    return {"part": "parts/overview.html", "overview": content, "open_alerts": content.alerts}


def _of_many(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """A list where a site, or a state, is asked for; else how many work at each site."""
    asked = {name: request.GET.get(name, "").replace("\x00", "") for name in ASKED}
    if asked["state"] not in STATES:
        asked["state"] = ""
    is_list = bool(asked["site"] or asked["state"])
    orders = series_list.ORDERS if is_list else site_matrix.ORDERS
    if asked["order"] not in orders:
        asked["order"] = orders[0]
    choice = series_list.Choice(asked["site"], asked["suite"], asked["state"])
    order, number = asked["order"], _number(request.GET.get("page", ""))
    return {
        "part": "parts/listing.html" if is_list else "parts/tally.html",
        "overview": series_list.listing(request.user, now, choice, order=order, page=number)
        if is_list
        else site_matrix.tally(request.user, now, suite=choice.suite, order=order, page=number),
        "choice": choice,
        "order": order,
        "orders": orders,
        "states": STATES,
        "suites": Suite.objects.visible_to(request.user).order_by("name"),
        "query": urlencode({name: value for name, value in asked.items() if value}),
    }


def _number(said: str) -> int:
    """Of a page; the first where none is said that can be read."""
    return int(said) if re.fullmatch("[0-9]{1,6}", said) else 1
