"""Incidents: one for each cause of failures or alerts, with their timelines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from django.contrib.auth.models import User
from django.db.models import Prefetch
from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field, StringConstraints

from monitor.analysis.alerts.listing import silence_preview
from monitor.analysis.incidents import actions as incident_actions
from monitor.analysis.incidents.actions import LONGEST_SILENCE
from monitor.models import Alert, Incident, IncidentEvent, IncidentSeries, Series
from monitor.models.incident import IncidentAction
from monitor.models.natural_order import sort_name
from monitor.models.token import RUN
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, RowId, Time

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.models.incident import IncidentQuerySet

router = Router(tags=["incidents"])
MOST_TEXT = 2000  # characters, as on the page
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_TEXT)]


class IncidentState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"
    ALL = "all"


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
    silenced_until: datetime | None
    silenced_by: str
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
        return sorted(alerted | {row.series.name for row in incident.affected.all()}, key=sort_name)


class Comment(Body):
    """A comment, or what removed a cause."""

    text: Text


class Assignment(Body):
    """*to* is a user, by default the caller; empty: no user."""

    to: str | None = None


class IncidentList(ListOut):
    incidents: list[IncidentOut]


class IncidentQuery(Page, WindowFilter):
    """*start* and *end* bound the time at which the incident opened."""

    state: IncidentState = IncidentState.OPEN
    is_silenced: bool | None = Field(
        None, description="Only incidents that are silenced now, or only others.", examples=[True]
    )


class Silence(Body):
    """*until* when no alert of the incident is announced, and why."""

    until: Time
    text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MOST_TEXT)] = ""


class SilenceOut(Schema):
    """A silence, and what it withholds, or one would: messages of *alert_count* open alerts.

    *until* is null and *by* empty while the incident is not silenced.
    """

    until: datetime | None = Field(description="When it ends.", examples=["2026-03-01T16:00:00Z"])
    by: str = Field(description="The user who silenced the incident.", examples=["ada"])
    alert_count: int
    rules: list[str] = Field(description="The alert rules of these alerts.", examples=[["main-failures"]])
    channels: list[str] = Field(
        description="The kinds of channels that the rules notify.", examples=[["email"]]
    )


class IncidentEventOut(Schema):
    """An entry of a timeline; *user* is empty if the service wrote it, *series* null if it is about none."""

    id: int
    at: datetime
    action: IncidentAction
    series: str | None
    user: str
    text: str

    @staticmethod
    def resolve_series(event: IncidentEvent) -> str | None:
        return event.series.name if event.series else None


class IncidentEventList(ListOut):
    events: list[IncidentEventOut]


@router.get(
    "/incidents", response=IncidentList, operation_id="list_incidents", summary="List incidents, newest first"
)
def list_incidents(request: HttpRequest, query: Query[IncidentQuery]) -> HttpResponse:
    """Without *state*, the open ones. *series* are those that you may see."""
    rows = _visible(request)
    if query.state != IncidentState.ALL:
        rows = rows.filter(resolved_at__isnull=query.state == IncidentState.OPEN)
    if query.is_silenced is not None:
        silenced = rows.silenced(timezone.now())
        rows = silenced if query.is_silenced else rows.exclude(pk__in=silenced.order_by().values("pk"))
    return list_rows(query, query.within(rows, "opened_at"), IncidentList, order=["-opened_at", "-id"])


@router.get(
    "/incidents/{incident}",
    response=IncidentOut,
    operation_id="show_incident",
    openapi_extra=declare(errors={404: ["unknown_incident"]}),
    summary="Show an incident",
)
def show_incident(request: HttpRequest, incident: RowId, query: Query[Sparse]) -> HttpResponse:
    return show_item(query, _found(request, incident), IncidentOut)


@router.get(
    "/incidents/{incident}/events",
    response=IncidentEventList,
    operation_id="list_incident_events",
    openapi_extra=declare(errors={404: ["unknown_incident"]}),
    summary="List the timeline of an incident",
)
def list_incident_events(request: HttpRequest, incident: RowId, query: Query[Page]) -> HttpResponse:
    """The oldest event first."""
    events = _found(request, incident).events.visible_to(request.user)
    return list_rows(query, events.select_related("series"), IncidentEventList, order=["at", "id"])


@router.get(
    "/incidents/{incident}/events/{event}",
    response=IncidentEventOut,
    operation_id="show_incident_event",
    openapi_extra=declare(errors={404: ["unknown_event", "unknown_incident"]}),
    summary="Show an entry of the timeline of an incident",
)
def show_incident_event(
    request: HttpRequest, incident: RowId, event: RowId, query: Query[Sparse]
) -> HttpResponse:
    events = _found(request, incident).events.visible_to(request.user).select_related("series")
    found = events.filter(pk=event).first()
    if found is None:
        raise Refused(404, "unknown_event", f"the incident {incident} has no event {event} that you may see")
    return show_item(query, found, IncidentEventOut)


def _check_manageable(request: HttpRequest, incident: int) -> None:
    require_manageable(_found(request, incident), Incident.objects.manageable_by(request.user))


_ACT: dict[str, Any] = {
    "scope": RUN,
    "errors": {404: ["unknown_incident"], 409: ["resolved"]},
    "permission": require_site_permission,
    "subject": _check_manageable,
}


@router.post(
    "/incidents/{incident}/acknowledge",
    response=IncidentOut,
    operation_id="acknowledge_incident",
    openapi_extra=declare(**_ACT),
    summary="Acknowledge an open incident",
)
def acknowledge_incident(request: HttpRequest, incident: RowId) -> Incident:
    """The first acknowledgement stays, while its user may change the incident.

    Alerts that join the incident later are not announced."""
    return _acted(request, incident, incident_actions.acknowledge)


@router.post(
    "/incidents/{incident}/assign",
    response=IncidentOut,
    operation_id="assign_incident",
    openapi_extra=declare(
        **{**_ACT, "errors": {**_ACT["errors"], 422: ["unknown_user"]}},
        example={},
    ),
    summary="Assign an open incident",
)
def assign_incident(request: HttpRequest, incident: RowId, order: Assignment) -> Incident:
    to = request.user.get_username() if order.to is None else _user_name(order.to)
    return _acted(request, incident, partial(incident_actions.assign, to=to))


@router.post(
    "/incidents/{incident}/resolve",
    response=IncidentOut,
    operation_id="resolve_incident",
    openapi_extra=declare(**_ACT, example={"text": "replaced the disk"}),
    summary="Resolve an open incident",
)
def resolve_incident(request: HttpRequest, incident: RowId, order: Comment) -> Incident:
    """*text* says what removed the cause. Only a later failure opens the incident again."""
    return _acted(request, incident, partial(incident_actions.resolve, text=order.text))


@router.get(
    "/incidents/{incident}/silence",
    response=SilenceOut,
    operation_id="show_silence",
    openapi_extra=declare(errors={404: ["unknown_incident"]}),
    summary="Show the silence of an incident, and what it withholds",
)
def show_silence(request: HttpRequest, incident: RowId, query: Query[Sparse]) -> HttpResponse:
    """Also of an incident that is not silenced: a preview of what a silence would withhold."""
    return show_item(query, _silence(request, _found(request, incident)), SilenceOut)


@router.put(
    "/incidents/{incident}/silence",
    response=SilenceOut,
    operation_id="silence_incident",
    openapi_extra=declare(
        **_ACT,
        example={"until": "2100-03-01T16:00:00Z", "text": "the vendor is on the way"},
    ),
    summary="Silence an open incident until a time",
)
def silence_incident(request: HttpRequest, incident: RowId, order: Silence) -> SilenceOut:
    """Alerts of the incident are not announced until then; what is still open at the end is."""
    if not timedelta(0) < order.until - timezone.now() <= LONGEST_SILENCE:
        raise Refused(422, "invalid", f"until: expected a time within the next {LONGEST_SILENCE.days} days")
    return _silence(
        request,
        _acted(request, incident, partial(incident_actions.silence, until=order.until, text=order.text)),
    )


@router.delete(
    "/incidents/{incident}/silence",
    response={204: None},
    operation_id="end_silence",
    openapi_extra=declare(**_ACT),
    summary="End the silence of an incident",
)
def end_silence(request: HttpRequest, incident: RowId) -> HttpResponse:
    """Alerts that are open are announced then."""
    _acted(request, incident, partial(incident_actions.silence, until=None, text=""))
    return HttpResponse(status=204)


@router.post(
    "/incidents/{incident}/events",
    response={201: IncidentEventOut},
    operation_id="comment_incident",
    openapi_extra=declare(
        **{**_ACT, "errors": {404: ["unknown_incident"]}}, example={"text": "asked the vendor"}
    ),
    summary="Comment an incident, also a resolved one",
)
def comment_incident(request: HttpRequest, incident: RowId, order: Comment) -> HttpResponse:
    """Add an entry to the timeline."""
    found = _acted(request, incident, partial(incident_actions.comment, text=order.text))
    own = found.events.filter(action=IncidentAction.COMMENTED, user=request.user.get_username())
    comment = IncidentEventOut.from_orm(own.latest("pk"))
    return created(comment, status=201, location=f"/incidents/{incident}/events/{comment.id}")


def _acted(request: HttpRequest, key: int, act: Callable[..., Incident]) -> Incident:
    """Call *act* with the incident *key*, the caller and the time; return the incident."""
    try:
        act(key, user=request.user.get_username(), now=timezone.now())
    except incident_actions.IncidentIsResolved as error:
        raise Refused(409, "resolved", str(error)) from None
    return _found(request, key)


def _silence(request: HttpRequest, found: Incident) -> SilenceOut:
    preview = silence_preview(found.alerts.visible_to(request.user))
    is_silenced = found.is_silenced(timezone.now())
    return SilenceOut(
        until=found.silenced_until if is_silenced else None,
        by=found.silenced_by if is_silenced else "",
        alert_count=preview.alerts,
        rules=list(preview.rules),
        channels=list(preview.kinds),
    )


def _user_name(name: str) -> str:
    if name and not User.objects.filter(username=name, is_active=True).exists():
        raise Refused(422, "unknown_user", f"to: expected an active user, got {name!r}")
    return name


def _visible(request: HttpRequest) -> IncidentQuerySet:
    series = Series.objects.visible_to(request.user).order_by()
    affected = IncidentSeries.objects.filter(series__in=series).select_related("series")
    alerts = Alert.objects.filter(series__in=series).select_related("series")
    rows = Incident.objects.visible_to(request.user).select_related("signature")
    return rows.prefetch_related(Prefetch("affected", affected), Prefetch("alerts", alerts))


def _found(request: HttpRequest, key: int) -> Incident:
    found = _visible(request).filter(pk=key).first()
    if found is None:
        raise Refused(404, "unknown_incident", f"there is no incident {key} that you may see")
    return found
