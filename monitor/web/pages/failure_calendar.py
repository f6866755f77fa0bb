"""The calendar of incidents: when which cause was open, month by month."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from monitor.analysis.incidents.by_day import CalendarDay, first_of_month, month_of, spans_during
from monitor.models import FailureSignature, Incident
from monitor.web.charts.incident_items import incident_items
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import zone

SHOWN_A_DAY = 4  # the others, if a day has more, are folded


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """Show the month and the cause that the query string names, so that the address is a permalink."""
    now, clock = timezone.now(), zone(request)
    first = first_of_month(request.GET.get("month", ""), now.astimezone(clock).date())
    cause = request.GET.get("signature", "").replace("\x00", "")
    site = request.GET.get("site", "").replace("\x00", "").strip()
    incidents = Incident.objects.visible_to(request.user)
    if cause:
        incidents = incidents.filter(signature__name=cause)
    if site:
        incidents = incidents.filter(name__icontains=site)

    def shown() -> dict[str, Any]:
        month = month_of(spans_during(incidents, first, clock), first, clock, now)
        listed = Incident.objects.select_related("signature").in_bulk(month.listed)  # of the visible ones
        return {"month": month, "weeks": [[_cell(day, listed) for day in week] for week in month.weeks]}

    def filters() -> list[FilterField]:
        causes = FailureSignature.objects.order_by("title").values_list("name", "title")
        return [
            FilterField("signature", "Cause", cause, options=[("", "all"), *causes]),
            FilterField("site", "Site or part", site),
        ]

    context = {
        **(compute(request, "month", shown) or {"month": month_of([], first, clock, now)}),
        "fields": compute(request, "filters", filters),
        "is_filtered": bool(cause or site),
    }
    return render(request, "pages/failure_calendar.html", context)


def _cell(day: CalendarDay, listed: Mapping[int, Incident]) -> dict[str, Any]:
    return {
        "day": day,
        "shown": incident_items(day.listed[:SHOWN_A_DAY], listed, day.begins),
        "folded": incident_items(day.listed[SHOWN_A_DAY:], listed, day.begins),
    }


entries = [NavigationEntry("Failures", "Calendar", "failure-calendar")]
urlpatterns = [path("failures/calendar/", page, name="failure-calendar")]
