"""Incidents: one for each cause by which series fail, with their timelines."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from django.db.models import Prefetch
from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.api.http.auth import require_run_permission
from monitor.api.http.problems import Refused
from monitor.failures import incident_actions
from monitor.models import Incident, IncidentEvent, IncidentSeries, Series
from monitor.models.incident import IncidentAction

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.models.incident import IncidentQuerySet

router = Router(tags=["incidents"])
MOST_ID = 2**63


class IncidentOut(Schema):
    """A cause by which series fail; *resolved_at* is null while the incident is open.

    *kind* and *name* are the part of the grid at fault, as of `/failures/attributions`; the kind `at` means
    that the runs failed at this site, and no part was found to be at fault. The kind `monitor` suspects the
    monitor itself; *is_held* incidents were opened while it was suspected.
    """

    id: int
    title: str
    signature: str | None
    kind: str
    name: str
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
        return sorted({row.series.name for row in incident.affected.all()})


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
    """The first acknowledgement stays."""
    require_run_permission(request)
    found = _found(request, incident)
    try:
        incident_actions.acknowledge(found.pk, request.user.get_username(), timezone.now())
    except incident_actions.IncidentIsResolved as error:
        raise Refused(409, "resolved", str(error)) from None
    return _found(request, incident)


def _visible(request: HttpRequest) -> IncidentQuerySet:
    series = Series.objects.visible_to(request.user).order_by()
    affected = IncidentSeries.objects.filter(series__in=series).select_related("series")
    rows = Incident.objects.visible_to(request.user).select_related("signature")
    return rows.prefetch_related(Prefetch("affected", affected))


def _found(request: HttpRequest, key: int) -> Incident:
    found = _visible(request).filter(pk=key).first() if 0 < key < MOST_ID else None
    if found is None:
        raise Refused(404, "unknown_incident", f"there is no incident {key} that you may see")
    return found
