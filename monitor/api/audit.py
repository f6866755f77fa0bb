"""The audit record: changes and denied attempts."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from ninja import Query, Router, Schema

from monitor.api.http.auth import require_audit_permission
from monitor.api.http.find_metrics import checked_period
from monitor.models import AuditEvent
from monitor.models.audit_event import AuditChannel, AuditOutcome

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["access"])

MOST_ID = 2**63


class ChangeOut(Schema):
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
    changes: list[ChangeOut]


class AuditList(Schema):
    events: list[AuditEventOut]
    next: str | None


@router.get(
    "/audit", response=AuditList, operation_id="list_audit_events", summary="List changes and denials"
)
def list_audit_events(
    request: HttpRequest,
    user: str | None = None,
    token: str | None = None,
    outcome: AuditOutcome | None = None,
    channel: AuditChannel | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[int | None, Query(ge=1, lt=MOST_ID)] = None,
) -> dict[str, Any]:
    """Newest first; for operators and administrators. *start* and *end* limit the last repetition."""
    require_audit_permission(request)
    since, until = checked_period(start, end)
    filters = {
        "user": user,
        "token": token,
        "outcome": outcome,
        "channel": channel,
        "last_at__gte": since,
        "last_at__lt": until,
        "pk__lt": cursor,
    }
    chosen = {name: value for name, value in filters.items() if value is not None}
    events = AuditEvent.objects.visible_to(request.user).order_by("-pk")
    if any("\x00" in value for value in (user or "", token or "")):
        events = events.none()
    page = list(events.filter(**chosen)[: limit + 1])
    return {"events": page[:limit], "next": str(page[limit - 1].pk) if len(page) > limit else None}
