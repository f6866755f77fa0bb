"""Incidents: one for each cause of failures or alerts; the timeline of one, and what users do about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.alerts.listing import listed, notification_states
from monitor.failures import incident_actions
from monitor.failures.incidents import earlier
from monitor.models import Alert, Incident, IncidentSeries, Series
from monitor.models.site import may_manage_somewhere
from monitor.pages.http.access import check_manageable, managers_only, members_only
from monitor.pages.http.navigation import NavigationEntry

MOST_RESOLVED = 50
MOST_EVENTS = 200
MOST_ALERTS = 200
MOST_TEXT = 2000  # characters of a comment


@members_only
def page(request: HttpRequest) -> HttpResponse:
    visible = Incident.objects.visible_to(request.user).select_related("signature")
    failing, alerts = IncidentSeries.objects.all(), Alert.objects.all()
    counted = visible.annotate(
        series_count=Coalesce(Greatest(_series_of(failing), _series_of(alerts)), 0),
        affected_count=Coalesce(
            Greatest(_series_of(failing.filter(until=None)), _series_of(alerts.open())), 0
        ),
    )
    context = {
        "open": counted.open(),
        "resolved": counted.exclude(resolved_at=None).order_by("-resolved_at", "-pk")[:MOST_RESOLVED],
        "most_resolved": MOST_RESOLVED,
        "now": timezone.now(),
    }
    return render(request, "pages/incidents.html", context)


def _series_of(rows: QuerySet[Any]) -> Subquery:
    """Return the number of series of those of *rows* that belong to the incident."""
    of_incident = rows.filter(incident=OuterRef("pk")).order_by().values("incident")
    return Subquery(of_incident.annotate(count=Count("series", distinct=True)).values("count"))


@members_only
def incident(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one incident: what it affects, its timeline, and how earlier ones of its cause ended."""
    visible = Incident.objects.visible_to(request.user).select_related("signature")
    found = get_object_or_404(visible, pk=pk)
    series = Series.objects.visible_to(request.user)
    events = found.events.visible_to(request.user).select_related("series")
    context = {
        "incident": found,
        "affected": found.affected.filter(series__in=series).select_related("series"),
        "events": list(events.order_by("-at", "-pk")[:MOST_EVENTS])[::-1],
        "most_events": MOST_EVENTS,
        "alerts": listed(found.alerts.visible_to(request.user).order_by("since", "pk")[:MOST_ALERTS]),
        "most_alerts": MOST_ALERTS,
        "suspicion_messages": notification_states(found.notifications.all()),
        "earlier": earlier(found, visible),
        "most_text": MOST_TEXT,
        "may_act": may_manage_somewhere(request.user)
        and Incident.objects.manageable_by(request.user).filter(pk=pk).exists(),
        "now": timezone.now(),
    }
    return render(request, "pages/incident.html", context)


@members_only
@require_POST
@managers_only()
def act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Do what the button *action* says, with the text of the form."""
    found = get_object_or_404(Incident.objects.visible_to(request.user), pk=pk)
    check_manageable(found, Incident.objects.manageable_by(request.user))
    text = request.POST.get("text", "").replace("\x00", "").strip()[:MOST_TEXT]
    user, now = request.user.get_username(), timezone.now()
    if action in _NEED_TEXT and not text:
        messages.error(request, f"{action.capitalize()}: expected a text.")
        return redirect("incident", pk=pk)
    try:
        _ACTIONS[action](found.pk, text, user, now)
    except incident_actions.IncidentIsResolved as error:
        messages.error(request, f"{action.capitalize()}: {error}.")
    return redirect("incident", pk=pk)


def _acknowledge(key: int, _text: str, user: str, now: datetime) -> Incident:
    return incident_actions.acknowledge(key, user, now)


def _assign_to_user(key: int, _text: str, user: str, now: datetime) -> Incident:
    return incident_actions.assign(key, user, user, now)


_ACTIONS: dict[str, Callable[[int, str, str, datetime], Incident]] = {
    "acknowledge": _acknowledge,
    "assign": _assign_to_user,
    "comment": incident_actions.comment,
    "resolve": incident_actions.resolve,
}
_NEED_TEXT = ("comment", "resolve")

entries = [NavigationEntry("Status", "Incidents", "incidents", pages=("incident",))]
urlpatterns = [
    path("incidents/", page, name="incidents"),
    path("incidents/<int:pk>/", incident, name="incident"),
    *(
        path(f"incidents/<int:pk>/{action}/", act, {"action": action}, name=f"incident-{action}")
        for action in _ACTIONS
    ),
]
