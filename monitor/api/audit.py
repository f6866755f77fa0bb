"""The audit record: changes and denied attempts."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema

from monitor.api.http.auth import require_audit_permission
from monitor.api.http.filters import WindowFilter, chosen
from monitor.api.http.lists import ListOut, Page, list_rows
from monitor.api.http.schemas import NameFilter
from monitor.models import AuditEvent
from monitor.models.audit_event import AuditChannel, AuditOutcome

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
    token: NameFilter = ""
    outcome: AuditOutcome | None = None
    channel: AuditChannel | None = None


@router.get(
    "/audit", response=AuditList, operation_id="list_audit_events", summary="List changes and denials"
)
def list_audit_events(request: HttpRequest, query: Query[AuditQuery]) -> HttpResponse:
    """Newest first; for operators and administrators."""
    require_audit_permission(request)
    lookups = chosen(user=query.user, token=query.token, outcome=query.outcome, channel=query.channel)
    events = query.within(AuditEvent.objects.visible_to(request.user).filter(**lookups), "last_at")
    return list_rows(query, events, AuditList, order=["-id"])
