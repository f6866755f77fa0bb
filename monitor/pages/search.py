"""Search: one box that finds sites, resources, series, runs, incidents, signatures and help."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone

from monitor.overview.search import AT_MOST, HitGroup, only_hit, search
from monitor.pages.http.access import members_only, wants_part
from monitor.pages.http.help_search import help_hits

SUGGESTED = 5  # of each kind, below the search field of every page


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show what the text names; while the reader types, only the list. A full name leads to its page."""
    text = request.GET.get("q", "").strip()
    now = timezone.now()
    if wants_part(request):
        is_suggestion = request.headers.get("HX-Target") == "search-suggestions"
        at_most = SUGGESTED if is_suggestion else AT_MOST
        groups = _with_help(search(request.user, text, now, at_most=at_most), text, at_most)
        context = {"groups": groups, "text": text, "is_suggestion": is_suggestion}
        return render(request, "parts/search_results.html", context)
    groups = search(request.user, text, now)
    hit = only_hit(groups, text)
    if hit is not None and "all" not in request.GET:
        return redirect(hit.url)
    return render(request, "pages/search.html", {"groups": _with_help(groups, text, AT_MOST), "text": text})


def _with_help(groups: list[HitGroup], text: str, at_most: int) -> list[HitGroup]:
    found = help_hits(text, at_most)
    return [*groups, found] if found.hits else groups


urlpatterns = [path("search/", page, name="search")]
