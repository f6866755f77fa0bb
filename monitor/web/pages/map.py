"""The map of sites: where they are, which work, and which links between them fail."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone

from monitor.web.charts.map_svg import DrawnLink, Place, draw_map, words_of
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.places.site_map import MapSite, site_map

MOST_LISTED = 30  # links in the table


@members_only
def page(request: HttpRequest) -> HttpResponse:
    return render(request, "pages/map.html", compute(request, "map", lambda: _map(request)) or {})


def _map(request: HttpRequest) -> dict[str, Any]:
    content = site_map(request.user, timezone.now())
    links = [DrawnLink(each.first, each.second, each.failing > 0) for each in content.links]
    return {
        "sites": content.sites,
        "map": draw_map([_place(site) for site in content.sites if site.is_placed], links),
        "unplaced": [site for site in content.sites if not site.is_placed],
        "links": content.links[:MOST_LISTED],
        "link_count": len(content.links),
        "words": words_of(Counter(site.state for site in content.sites)),
    }


def _place(site: MapSite) -> Place:
    url = reverse("site", args=[site.name])
    latitude, longitude = site.latitude or 0.0, site.longitude or 0.0
    return Place(site.name, latitude, longitude, site.state, site.state, url)


entries = [NavigationEntry("Status", "Map", "map")]
urlpatterns = [path("map/", page, name="map")]
