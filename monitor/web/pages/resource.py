"""One resource of a site: how it is reached, its state, series and failures."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils import timezone

from monitor.models import Resource
from monitor.web.charts.stage_bars import stages_by_probe
from monitor.web.pages.http.access import members_only, wants_part
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.places.resource_details import MOST_SERIES, ShownResource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@members_only
@live
def page(request: HttpRequest, site: str, name: str) -> HttpResponse:
    visible = Resource.objects.visible_to(request.user).select_related("site")
    resource, now = get_object_or_404(visible, site__name=site, name=name), timezone.now()
    chosen = time_range(request, now)
    details = ShownResource(request.user, resource, now, chosen.start, chosen.end)
    seen = [compute(request, part, functools.partial(read, details)) for part, read in _PARTS.items()]
    digest = digest_of(seen)
    if is_current(request, digest):
        return HttpResponse(status=204)
    context = {
        "resource": resource,
        "details": details,
        "most_series": MOST_SERIES,
        "stages": compute(request, "stages", lambda: stages_by_probe(details.stages)),
        "time_range": chosen,
        "crumbs": [("Sites", reverse("sites")), (site, reverse("site", args=[site]))],
        "digest": digest,
        "now": now,
    }
    template = "parts/resource.html" if wants_part(request) else "pages/resource.html"
    return render(request, template, context)


# By part of the page: what it shows, without ages.
_PARTS: Mapping[str, Callable[[ShownResource], object]] = {
    "state": lambda shown: shown.state,
    "access": lambda shown: shown.shows_hosts,
    "series": lambda shown: [(each.line.name, each.line.cell, each.line.means) for each in shown.series],
    "failures": lambda shown: [(row.category, row.runs) for row in shown.failures],
    "latest": lambda shown: [run.pk for run in shown.latest],
}

urlpatterns = [path("sites/<slug:site>/resources/<slug:name>/", page, name="resource")]
