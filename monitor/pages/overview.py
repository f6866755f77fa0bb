"""The overview: every series at every site."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from monitor.pages.access import members_only, wants_part
from monitor.services.overview import overview


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """The page, or its grid alone; nothing at all (204) when a reader has seen the newest already."""
    now = timezone.now()
    content = overview(request.user, now)
    if wants_part(request) and request.GET.get("seen") == content.digest:
        return HttpResponse(status=204)
    template = "parts/overview.html" if wants_part(request) else "pages/overview.html"
    return render(request, template, {"overview": content, "open_alerts": content.alerts, "now": now})
