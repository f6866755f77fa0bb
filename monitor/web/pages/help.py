"""Help: the words of the pages, the keys, and the guides."""

from __future__ import annotations

import mimetypes

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from monitor.web.pages.http import glossary
from monitor.web.pages.http.access import accounts_only
from monitor.web.pages.http.guides import guide_files, guide_titles, render_guide
from monitor.web.pages.http.navigation import NavigationEntry

KEYS = (
    ("/", "focuses the search"),
    ("Escape", "closes a menu"),
    ("Tab, Enter", "moves between links and fields, opens"),
    ("← → + - 0", "in a chart with the focus: moves along the time axis, zooms, shows all"),
)


@accounts_only
def page(request: HttpRequest) -> HttpResponse:
    context = {
        "states": glossary.state_terms(),
        "freshness": [(each.value, meaning) for each, meaning in glossary.FRESHNESS.items()],
        "terms": glossary.TERMS,
        "keys": KEYS,
        "guides": guide_titles().items(),
    }
    return render(request, "pages/help.html", context)


@accounts_only
def guide(request: HttpRequest, guide: str) -> HttpResponse:
    if guide not in guide_titles():
        raise Http404(f"There is no guide {guide}.")
    context = {"guide": render_guide(guide), "crumbs": [("Help", reverse("help"))]}
    return render(request, "pages/help_guide.html", context)


@accounts_only
def guide_file(_request: HttpRequest, file: str) -> HttpResponse:
    """Return an image or a schema that a guide links."""
    place = guide_files().get(file)
    if place is None:
        raise Http404(f"No guide links {file}.")
    return HttpResponse(place.read_bytes(), content_type=mimetypes.guess_type(file)[0])


entries = [
    NavigationEntry(
        "Tools", "Help", "help", pages=("help-guide",), permits=lambda user: user.is_authenticated
    )
]
urlpatterns = [
    path("help/", page, name="help"),
    path("help/guides/<slug:guide>/", guide, name="help-guide"),
    path("help/files/<path:file>", guide_file, name="help-file"),
]
