"""Help: the words of the pages, the keys, and the guides."""

from __future__ import annotations

import functools

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from monitor.env import ROOT
from monitor.pages.http import glossary
from monitor.pages.http.access import accounts_only
from monitor.pages.http.navigation import NavigationEntry

KEYS = (
    ("/", "focuses the search"),
    ("Escape", "closes a menu"),
    ("Tab, Enter", "moves between links and fields, opens"),
    ("← → + - 0", "in a chart with the focus: moves along the time axis, zooms, shows all"),
)
GUIDES = ROOT / "docs"


@accounts_only
def page(request: HttpRequest) -> HttpResponse:
    context = {
        "states": glossary.state_terms(),
        "freshness": [(each.value, meaning) for each, meaning in glossary.FRESHNESS.items()],
        "terms": glossary.TERMS,
        "keys": KEYS,
        "guides": _titles().items(),
    }
    return render(request, "pages/help.html", context)


@accounts_only
def guide(request: HttpRequest, guide: str) -> HttpResponse:
    title = _titles().get(guide)
    if title is None:
        raise Http404(f"There is no guide {guide}.")
    _, _, text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8").partition("\n")
    context = {"title": title, "text": text.strip(), "crumbs": [("Help", reverse("help"))]}
    return render(request, "pages/help_guide.html", context)


@functools.cache
def _titles() -> dict[str, str]:
    """Return the titles of the guides by name, without their Markdown."""
    files = sorted(GUIDES.glob("*.md"))
    return {file.stem: file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for file in files}


entries = [
    NavigationEntry(
        "Tools", "Help", "help", pages=("help-guide",), permits=lambda user: user.is_authenticated
    )
]
urlpatterns = [
    path("help/", page, name="help"),
    path("help/guides/<slug:guide>/", guide, name="help-guide"),
]
