"""Search: one box for sites, resources, series, runs, incidents, signatures, help, and what ran at a time."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils import timezone

from monitor.web.pages.http.access import members_only, wants_part
from monitor.web.pages.http.help_search import help_hits
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import zone
from monitor.web.pages.http.time_search import time_hits
from monitor.web.search.search import AT_MOST, HitGroup, only_hit, search

SUGGESTED = 5  # of each kind, below the search field of every page


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show what the text names; while the reader types, only the list. A full name leads to its page."""
    text = request.GET.get("q", "").strip()
    now = timezone.now()
    if wants_part(request):
        is_suggestion = request.headers.get("HX-Target") == "search-suggestions"
        at_most = SUGGESTED if is_suggestion else AT_MOST
        found = compute(request, "results", lambda: _found(request, text, now, at_most)) or []
        groups = _with_help(found, text, at_most)
        context = {"groups": groups, "text": text, "is_suggestion": is_suggestion}
        return render(request, "parts/search_results.html", context)
    groups = compute(request, "results", lambda: _found(request, text, now)) or []
    hit = only_hit(groups, text)
    if hit is not None and "all" not in request.GET:
        return redirect(hit.url)
    return render(request, "pages/search.html", {"groups": _with_help(groups, text, AT_MOST), "text": text})


def _found(request: HttpRequest, text: str, now: datetime, at_most: int = AT_MOST) -> list[HitGroup]:
    at_time = time_hits(text, zone(request), now)
    groups = search(request.user, text, now, at_most=at_most)
    return [at_time, *groups] if at_time.hits else groups


def _with_help(groups: list[HitGroup], text: str, at_most: int) -> list[HitGroup]:
    found = help_hits(text, at_most)
    return [*groups, found] if found.hits else groups


urlpatterns = [path("search/", page, name="search")]
