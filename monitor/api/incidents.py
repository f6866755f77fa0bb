"""Incidents: one for each cause of failures or alerts, with their timelines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

from django.contrib.auth.models import User
from django.db.models import Prefetch
from django.utils import timezone
from ninja import Query, Router, Schema, Status
from pydantic import StringConstraints

from monitor.api.http.auth import require_manageable, require_site_permission
from monitor.api.http.problems import Refused
from monitor.failures import incident_actions
from monitor.models import Alert, Incident, IncidentEvent, IncidentSeries, Series
from monitor.models.incident import IncidentAction

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.models.incident import IncidentQuerySet

router = Router(tags=["incidents"])
MOST_ID = 2**63
MOST_TEXT = 2000  # characters, as on the page
Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_TEXT, pattern=r"^[^\x00]*$")
]


class IncidentOut(Schema):
    """A cause of failures or alerts; *resolved_at* is null while the incident is open.

    *kind* and *name* are the part of the grid at fault, as of `/failures/attributions`; the kind `at` means
    that the runs failed at this site, and no part was found to be at fault. With a *condition*, alerts of
    this condition opened it, about the `reporter` or the `series` *name*. The kind `monitor` suspects the
    monitor itself: messages of *is_held* incidents are held back until that is settled. *series* are those
    that fail or have an alert, or did.
    """

    id: int
    title: str
    signature: str | None
    kind: str
    name: str
    condition: str
    since: datetime
    opened_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str
    assigned_to: str
    is_held: bool
    resolved_at: datetime | None
    resolved_by: str
    resolution: str
    series: list[str]

    @staticmethod
    def resolve_signature(incident: Incident) -> str | None:
        return incident.signature.name if incident.signature else None

    @staticmethod
    def resolve_series(incident: Incident) -> list[str]:
        alerted = {alert.series.name for alert in incident.alerts.all() if alert.series}
        return sorted(alerted | {row.series.name for row in incident.affected.all()})


class Comment(Schema):
    text: Text


class Assignment(Schema):
    """*to* is a user, by default the caller; empty: no user."""

    to: str | None = None


class IncidentEventOut(Schema):
    """An entry of a timeline; *user* is empty if the service wrote it, *series* null if it is about none."""

    at: datetime
    action: IncidentAction
    series: str | None
    user: str
    text: str

    @staticmethod
    def resolve_series(event: IncidentEvent) -> str | None:
        return event.series.name if event.series else None


@router.get("/incidents", response=list[IncidentOut], summary="List open incidents, or all, newest first")
def list_incidents(
    request: HttpRequest, resolved: bool = False, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[Incident]:
    """With *resolved*, the resolved ones too. *series* are those that you may see."""
    rows = _visible(request)
    return list((rows if resolved else rows.open())[:limit])


@router.get("/incidents/{incident}", response=IncidentOut, summary="Show an incident")
def show_incident(request: HttpRequest, incident: int) -> Incident:
    return _found(request, incident)


@router.get(
    "/incidents/{incident}/events",
    response=list[IncidentEventOut],
    summary="List the timeline of an incident",
)
def list_incident_events(request: HttpRequest, incident: int) -> list[IncidentEvent]:
    events = _found(request, incident).events.visible_to(request.user)
    return list(events.select_related("series"))


@router.post(
    "/incidents/{incident}/acknowledge", response=IncidentOut, summary="Acknowledge an open incident"
)
def acknowledge_incident(request: HttpRequest, incident: int) -> Incident:
    """The first acknowledgement stays. Alerts that join the incident later are not announced."""
    return _acted(request, incident, incident_actions.acknowledge)


@router.post("/incidents/{incident}/assign", response=IncidentOut, summary="Assign an open incident")
def assign_incident(request: HttpRequest, incident: int, order: Assignment) -> Incident:
    to = request.user.get_username() if order.to is None else _user_name(order.to)
    return _acted(request, incident, partial(incident_actions.assign, to=to))


@router.post("/incidents/{incident}/resolve", response=IncidentOut, summary="Resolve an open incident")
def resolve_incident(request: HttpRequest, incident: int, order: Comment) -> Incident:
    """*text* says what removed the cause. Only a later failure opens the incident again."""
    return _acted(request, incident, partial(incident_actions.resolve, text=order.text))


@router.post(
    "/incidents/{incident}/events",
    response={201: IncidentEventOut},
    summary="Comment an incident, also a resolved one",
)
def comment_incident(request: HttpRequest, incident: int, order: Comment) -> Status[IncidentEvent]:
    """Add an entry to the timeline."""
    found = _acted(request, incident, partial(incident_actions.comment, text=order.text))
    own = found.events.filter(action=IncidentAction.COMMENTED, user=request.user.get_username())
    return Status(201, own.latest("pk"))


def _acted(request: HttpRequest, key: int, act: Callable[..., Incident]) -> Incident:
    """Call *act* with the incident *key*, the caller and the time; return the incident."""
    require_site_permission(request)
    found = _found(request, key)
    require_manageable(found, Incident.objects.manageable_by(request.user))
    try:
        act(found.pk, user=request.user.get_username(), now=timezone.now())
    except incident_actions.IncidentIsResolved as error:
        raise Refused(409, "resolved", str(error)) from None
    return _found(request, key)


def _user_name(name: str) -> str:
    if name and ("\x00" in name or not User.objects.filter(username=name, is_active=True).exists()):
        raise Refused(422, "unknown_user", f"to: expected an active user, got {name!r}")
    return name


def _visible(request: HttpRequest) -> IncidentQuerySet:
    series = Series.objects.visible_to(request.user).order_by()
    affected = IncidentSeries.objects.filter(series__in=series).select_related("series")
    alerts = Alert.objects.filter(series__in=series).select_related("series")
    rows = Incident.objects.visible_to(request.user).select_related("signature")
    return rows.prefetch_related(Prefetch("affected", affected), Prefetch("alerts", alerts))


def _found(request: HttpRequest, key: int) -> Incident:
    found = _visible(request).filter(pk=key).first() if 0 < key < MOST_ID else None
    if found is None:
        raise Refused(404, "unknown_incident", f"there is no incident {key} that you may see")
    return found
