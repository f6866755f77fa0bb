"""The audit record: changes and denied attempts."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.depot.access.audit_list import AuditFilter, selected_events
from monitor.models import AuditEvent
from monitor.models.audit_event import AuditChannel, AuditOutcome
from monitor.web.api.http.auth import require_audit_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter, RowId

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["access"])


class AuditedChangeOut(Schema):
    """What was changed, before and after."""

    kind: str
    name: str
    before: Any = None
    after: Any = None


class AuditEventOut(Schema):
    """*repeats*: how often it was denied between *at* and *last_at*. *session*: of a browser, as a hash."""

    id: int
    at: datetime
    last_at: datetime
    repeats: int
    outcome: AuditOutcome
    channel: AuditChannel
    user: str
    token: str
    session: str
    address: str
    action: str
    target: str
    status: int
    changes: list[AuditedChangeOut]


class AuditList(ListOut):
    events: list[AuditEventOut]


class AuditQuery(Page, WindowFilter):
    """*start* and *end* bound the last repetition."""

    user: NameFilter = ""
    token: NameFilter = Field("", description="The first characters of a token.", examples=["gcast_a1b2c3"])
    action: NameFilter = Field("", description="A part of the action.", examples=["POST /api/v1/holds"])
    subject: NameFilter = Field(
        "",
        description="An object that was changed, or that the request names: `ncsa`; or a part of a path.",
        examples=["ncsa"],
    )
    outcome: AuditOutcome | None = None
    channel: AuditChannel | None = None


@router.get(
    "/audit",
    response=AuditList,
    operation_id="list_audit_events",
    openapi_extra=declare(permission=require_audit_permission),
    summary="List changes and denials",
)
def list_audit_events(request: HttpRequest, query: Query[AuditQuery]) -> HttpResponse:
    """Newest first; for operators and administrators."""
    query.within(AuditEvent.objects.none(), "last_at")  # refuses an empty window
    chosen = AuditFilter(
        start=query.start,
        end=query.end or timezone.now(),
        user=query.user,
        token=query.token,
        action=query.action,
        subject=query.subject,
        outcome=query.outcome or "",
        channel=query.channel or "",
    )
    events = selected_events(chosen, AuditEvent.objects.visible_to(request.user))
    return list_rows(query, events, AuditList, order=["-id"])


@router.get(
    "/audit/{event}",
    response=AuditEventOut,
    operation_id="show_audit_event",
    openapi_extra=declare(errors={404: ["unknown_event"]}, permission=require_audit_permission),
    summary="Show a change or denial",
)
def show_audit_event(request: HttpRequest, event: RowId, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    found = AuditEvent.objects.visible_to(request.user).filter(pk=event).first()
    if found is None:
        raise Refused(404, "unknown_event", f"there is no event {event}")
    return show_item(query, found, AuditEventOut)
