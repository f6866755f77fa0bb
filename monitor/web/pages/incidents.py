"""Incidents: one for each cause of failures or alerts; the timeline of one, and what users do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.analysis.alerts.listing import listed, notification_states, silence_preview
from monitor.analysis.incidents import actions as incident_actions
from monitor.analysis.incidents.open_and_resolve import earlier
from monitor.analysis.outcomes.streaks import FailureStreak, incident_streaks, longest, streaks
from monitor.models import Alert, Incident, IncidentSeries, Run, Series
from monitor.models.site import may_manage_somewhere
from monitor.web.pages.http.access import check_manageable, managers_only, members_only, wants_part
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.updates import digest_of, is_current, live

if TYPE_CHECKING:
    from monitor.models.alert import AlertQuerySet

Action = Callable[[int, str, str, datetime], Incident]  # key, text, user and time

MOST_RESOLVED = 50
MOST_EVENTS = 200
MOST_ALERTS = 200
MOST_TEXT = 2000  # characters of a comment
MOST_OPEN = 200
MOST_SERIES = 200
MOST_USERS = 500  # suggested as assignees
SILENCES = (("1", "1 hour"), ("4", "4 hours"), ("24", "1 day"), ("168", "1 week"))  # hours


class UnknownAssignee(ValueError):
    """An incident cannot be assigned to this user. Permanent."""


@dataclass(frozen=True)
class ListedIncident:
    """An incident as lists show it; *streak* is the longest streak of a series that it affects."""

    incident: Incident
    streak: FailureStreak | None
    now: datetime

    @property
    def since(self) -> datetime:
        """The true beginning: an incident opens with the second failure, and may have opened late."""
        began_at = self.streak.began_at if self.streak else self.incident.since
        return min(self.incident.since, began_at)

    @cached_property
    def is_silenced(self) -> bool:
        return self.incident.is_silenced(self.now)

    @property
    def state(self) -> str:
        if self.incident.resolved_at:
            return "resolved"
        if self.incident.is_held:
            return "held"
        return "acknowledged" if self.incident.acknowledged_at else "open"

    @property
    def facts(self) -> tuple[object, ...]:
        """What a row says, without ages."""
        return self.since, self.streak, self.state, self.is_silenced, self.incident.assigned_to


@members_only
@live
def page(request: HttpRequest) -> HttpResponse:
    """Show open incidents with their live counts, and the newest resolved ones."""
    now = timezone.now()
    visible = Incident.objects.visible_to(request.user).select_related("signature")
    failing = IncidentSeries.objects.visible_to(request.user)
    alerts = Alert.objects.visible_to(request.user)

    def open_incidents() -> list[ListedIncident]:
        now_affected = _series_of(failing.filter(until=None), alerts.open())
        opened = list(visible.open().annotate(affected_count=now_affected)[:MOST_OPEN])
        found = incident_streaks([each.pk for each in opened], Series.objects.visible_to(request.user), now)
        return [ListedIncident(each, found.get(each.pk), now) for each in opened]

    def resolved_incidents() -> list[Incident]:
        ended = visible.exclude(resolved_at=None).annotate(series_count=_series_of(failing, alerts))
        return list(ended.order_by("-resolved_at", "-pk")[:MOST_RESOLVED])

    rows = compute(request, "open", open_incidents) or []
    resolved = compute(request, "resolved", resolved_incidents) or []
    seen = compute(request, "open", lambda: [(row.incident.pk, row.facts) for row in rows])
    digest = digest_of([seen, [each.pk for each in resolved]])
    if is_current(request, digest):
        return HttpResponse(status=204)
    context = {
        "open": rows,
        "most_open": MOST_OPEN,
        "resolved": resolved,
        "most_resolved": MOST_RESOLVED,
        "digest": digest,
        "now": now,
    }
    part = "parts/incidents.html" if wants_part(request) else "pages/incidents.html"
    return render(request, part, context)


def _series_of(*relations: QuerySet[Any]) -> Coalesce:
    """Return how many series of the incident one of *relations* has, of that which has most."""
    counts = [
        Subquery(
            rows.filter(incident=OuterRef("pk"))
            .order_by()
            .values("incident")
            .annotate(count=Count("series", distinct=True))
            .values("count")
        )
        for rows in relations
    ]
    return Coalesce(Greatest(*counts), 0)


@members_only
@live
def incident(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one incident: what it affects, its timeline, and how earlier ones of its cause ended."""
    now = timezone.now()
    visible = Incident.objects.visible_to(request.user).select_related("signature")
    found = get_object_or_404(visible, pk=pk)
    events = found.events.visible_to(request.user).select_related("series").order_by("-at", "-pk")
    alerts = found.alerts.visible_to(request.user)
    in_order = alerts.order_by("since", "pk")[:MOST_ALERTS]
    affected = compute(request, "affected", lambda: _affected(request, found, now))
    context: dict[str, Any] = {
        **(affected or {"shown": ListedIncident(found, None, now)}),
        "incident": found,
        "events": compute(request, "timeline", lambda: list(events[:MOST_EVENTS])),
        "most_events": MOST_EVENTS,
        "alerts": compute(request, "alerts", lambda: listed(in_order, now)),
        "most_alerts": MOST_ALERTS,
        "suspicion_messages": compute(
            request, "messages", lambda: notification_states(found.notifications.all())
        ),
        "crumbs": crumbs_of("incidents"),
        "earlier": compute(request, "earlier", lambda: earlier(found, visible)),
        "most_text": MOST_TEXT,
        "may_act": may_manage_somewhere(request.user)
        and Incident.objects.manageable_by(request.user).filter(pk=pk).exists(),
        "now": now,
    }
    if wants_part(request):
        return render(request, "parts/incident.html", context)
    if context["may_act"]:
        context |= compute(request, "actions", lambda: _actions(found, alerts)) or {}
    return render(request, "pages/incident.html", context)


def _affected(request: HttpRequest, found: Incident, now: datetime) -> dict[str, Any]:
    """Return the context of the figures and of the table of the series that the incident affects."""
    visible = found.affected.filter(series__in=Series.objects.visible_to(request.user))
    affected = visible.select_related("series")
    shown = list(affected.order_by(F("until").desc(nulls_first=True), "since")[:MOST_SERIES])
    counts = streaks({row.series_id: row.series.name for row in shown if row.until is None}, now)
    return {
        "shown": ListedIncident(found, longest(counts.values()), now),
        "affected": [(row, counts.get(row.series_id) if row.until is None else None) for row in shown],
        "affected_count": affected.count(),
        "latest_run": _latest_run(request, longest(counts.values())),
    }


def _actions(found: Incident, alerts: AlertQuerySet) -> dict[str, Any]:
    """Return the context of the buttons and their forms."""
    users = User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True)
    return {
        "is_acknowledged": found.is_acknowledged(),
        "silences": SILENCES,
        "silence": silence_preview(alerts),
        "users": list(users[:MOST_USERS]),
    }


def _latest_run(request: HttpRequest, streak: FailureStreak | None) -> Run | None:
    """Return the latest failed run of *streak*: one click from the incident to what it says."""
    if streak is None:
        return None
    runs = Run.objects.visible_to(request.user).filter(series__name=streak.series, slot=streak.latest_at)
    return runs.select_related("series").first()


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
        silence: Action = partial(_silence, request.POST.get("hours", ""))
        {**_ACTIONS, "silence": silence}[action](found.pk, text, user, now)
    except (incident_actions.IncidentIsResolved, UnknownAssignee) as error:
        messages.error(request, f"{action.capitalize()}: {error}.")
    return redirect("incident", pk=pk)


def _acknowledge(key: int, _text: str, user: str, now: datetime) -> Incident:
    return incident_actions.acknowledge(key, user, now)


def _assign(key: int, to: str, user: str, now: datetime) -> Incident:
    """Assign the incident to the user *to*; empty: to the user itself."""
    if to and not User.objects.filter(username=to, is_active=True).exists():
        raise UnknownAssignee(f"expected an active user, got {to[:150]!r}")
    return incident_actions.assign(key, to or user, user, now)


def _silence(hours: str, key: int, why: str, user: str, now: datetime) -> Incident:
    """Silence the incident for *hours*, one of ``SILENCES``; for any other value, end its silence."""
    until = now + timedelta(hours=int(hours)) if hours in dict(SILENCES) else None
    return incident_actions.silence(key, until, why, user, now)


_ACTIONS: dict[str, Action] = {
    "acknowledge": _acknowledge,
    "assign": _assign,
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
        for action in (*_ACTIONS, "silence")
    ),
]
