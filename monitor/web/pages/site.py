"""One site: its state, and everything that runs through it; the form of what is told about it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone

from monitor.core.units import coarse_seconds, tenths_of_percent
from monitor.models import Site, SiteMonth
from monitor.models.hold import HoldKind, Scope
from monitor.models.site import MOST_CONTACTS, may_manage_everywhere, may_manage_somewhere
from monitor.operations.gridfile.site_details import (
    InvalidSiteDetails,
    SiteDetails,
    change_details,
    may_configure,
)
from monitor.web.charts.stage_bars import stages_by_probe
from monitor.web.pages.http.access import check_manageable, managers_only, members_only, wants_part
from monitor.web.pages.http.hold_form import hold_form_context
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.read_form import accepts_form, fields_bytes
from monitor.web.pages.http.reader import time_range
from monitor.web.pages.http.site_form import SiteForm
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.places.site_details import ShownSite, VisiblePlace
from monitor.web.search import series_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@members_only
@live
def page(request: HttpRequest, name: str) -> HttpResponse:
    site, now = _find(request, name), timezone.now()
    order = request.GET.get("order", "")
    order = order if order in series_list.ORDERS else series_list.WORST
    place = VisiblePlace.of(request.user, site)
    chosen = time_range(request, now)
    number = page_number(request.GET.get("page", ""))
    shown = ShownSite(place, now, chosen.start, chosen.end, order, number)
    seen = [compute(request, part, functools.partial(read, shown)) for part, read in _PARTS.items()]
    digest = digest_of([site.notes, site.contacts, *seen])
    if is_current(request, digest):
        return HttpResponse(status=204)
    may_manage = _may_manage(request, site)
    context = {
        "site": site,
        "shown": shown,
        "order": order,
        "orders": series_list.ORDERS,
        "stages": compute(request, "stages", lambda: stages_by_probe(shown.stages)),
        "time_range": chosen,
        "month_columns": ("Month", "Availability", "Reliability", "Down"),
        "month_rows": compute(request, "availability", lambda: [_month_row(month) for month in shown.months]),
        "may_manage": may_manage,
        "crumbs": _crumbs(),
        "digest": digest,
        "now": now,
    }
    if wants_part(request):
        return render(request, "parts/site.html", context)
    if may_manage:
        scope = Scope(HoldKind.SITE, site.name)
        context |= compute(request, "hold-form", lambda: hold_form_context(request, scope, now)) or {}
    return render(request, "pages/site.html", context)


@accepts_form(fields_bytes(SiteForm.base_fields.values()))
@members_only
@managers_only()
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Show the form of what is told about the site, or store what it sends."""
    site = _find(request, name)
    check_manageable(site, Site.objects.manageable_by(request.user))
    form = SiteForm(
        request.POST or None, details=SiteDetails.of(site), may_configure=may_configure(request.user)
    )
    if request.method == "POST" and form.is_valid():
        try:
            change_details(site, form.details)
        except InvalidSiteDetails as error:
            form.add_error("longitude", f"{str(error).capitalize()}.")
        else:
            messages.success(request, f"Details of {site.name} stored.")
            return redirect("site", site.name)
    crumbs = [*_crumbs(), (site.name, reverse("site", args=[site.name]))]
    context = {"site": site, "form": form, "most_contacts": MOST_CONTACTS, "crumbs": crumbs}
    return render(request, "pages/site_edit.html", context, status=422 if form.errors else 200)


def _find(request: HttpRequest, name: str) -> Site:
    return get_object_or_404(Site.objects.visible_to(request.user), name=name)


def _may_manage(request: HttpRequest, site: Site) -> bool:
    if may_manage_everywhere(request.user):
        return True
    manageable = Site.objects.manageable_by(request.user).filter(pk=site.pk)
    return may_manage_somewhere(request.user) and manageable.exists()


def _month_row(month: SiteMonth) -> tuple[str, str, str, str]:
    down = coarse_seconds(month.down_seconds) if month.down_seconds else ""
    return f"{month.month:%Y-%m}", _share(month.availability), _share(month.reliability), down


def _share(share: float | None) -> str:
    return "" if share is None else tenths_of_percent(share)


def _crumbs() -> list[tuple[str, str]]:
    return [("Sites", reverse("sites"))]


# By part of the page: what it shows, without ages.
_PARTS: Mapping[str, Callable[[ShownSite], object]] = {
    "state": lambda shown: (shown.state, shown.hold and shown.hold.pk),
    "resources": lambda shown: [(row.resource.name, row.state, row.series) for row in shown.resources],
    "reporters": lambda shown: [
        (row.standing.reporter.name, row.standing.state, row.series) for row in shown.reporters
    ],
    "maintenance": lambda shown: [
        (each.window.pk, each.occurrence, each.is_open) for each in shown.maintenance
    ],
    "incidents": lambda shown: [
        (each.pk, each.acknowledged_at, each.assigned_to) for each in shown.incidents
    ],
    "series": lambda shown: [(line.name, line.cell, line.means) for line in shown.series.lines],
    "availability": lambda shown: (
        shown.month and shown.month.availability,
        [(day.day, day.up_seconds, day.down_seconds, day.scheduled_seconds) for day in shown.days],
    ),
    "failures": lambda shown: [(row.category, row.runs) for row in shown.failures],
    "forecasts": lambda shown: [(each.series, each.median, each.probability) for each in shown.forecasts],
    "resolved": lambda shown: [each.incident.pk for each in shown.resolved],
}

urlpatterns = [
    path("sites/<slug:name>/", page, name="site"),
    path("sites/<slug:name>/edit/", edit, name="site-edit"),
]
