"""Holds: pause, drain and resume series, suites, sites and reporters."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from django.utils import timezone
from ninja import Query, Router, Schema, Status

from monitor.api.http.auth import require_site_permission
from monitor.api.http.hold_problems import HoldOut, KindName, hold_out, refused
from monitor.api.http.problems import Refused
from monitor.ledger import holds as holding
from monitor.ledger.holds import HoldError
from monitor.models import Hold
from monitor.models.hold import HoldMode, Scope

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["holds"])


class HoldIn(Schema):
    kind: KindName
    name: str
    mode: Literal["pause", "drain"]
    why: str
    until: datetime | None = None


class Why(Schema):
    why: str


@router.get(
    "/holds",
    response=list[HoldOut],
    operation_id="monitor_api_holds_every",
    summary="List current holds; with ended=true all holds, newest first",
)
def list_holds(
    request: HttpRequest, ended: bool = False, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[HoldOut]:
    now = timezone.now()
    visible = Hold.objects.visible_to(request.user)
    holds = visible if ended else visible.at(now)
    return [hold_out(hold, now) for hold in holds[:limit]]


@router.post(
    "/holds",
    response={201: HoldOut},
    operation_id="monitor_api_holds_begin",
    summary="Pause or drain a series, suite, site or reporter",
)
def begin_hold(request: HttpRequest, order: HoldIn) -> Status[HoldOut]:
    require_site_permission(request)
    now = timezone.now()
    until = order.until
    if until is not None and until.tzinfo is None:
        raise Refused(422, "invalid", f"until: expected a time with its offset, got {until.isoformat()}")
    try:
        scope = _scope(request, order.kind, order.name)
        new_hold = holding.hold(
            scope, HoldMode(order.mode), who=request.user.get_username(), why=order.why, now=now, until=until
        )
    except HoldError as error:
        raise refused(error) from error
    return Status(201, hold_out(new_hold, now))


@router.post("/holds/{kind}/{name}/resume", response=HoldOut, summary="End a hold")
def resume(request: HttpRequest, kind: str, name: str, order: Why) -> HoldOut:
    require_site_permission(request)
    now = timezone.now()
    try:
        scope = _scope(request, kind, name)
        hold = holding.resume(scope, who=request.user.get_username(), why=order.why, now=now)
        return hold_out(hold, now)
    except HoldError as error:
        raise refused(error) from error


def _scope(request: HttpRequest, kind: str, name: str) -> Scope:
    scope = holding.find_scope(kind, name, request.user)
    holding.check_may_hold(scope, request.user)
    return scope
