"""Holds: what does not begin for a while, who said so, and why."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from django.utils import timezone
from ninja import Query, Router, Schema, Status

from monitor.api.auth import require_run_permission
from monitor.api.problems import Refused
from monitor.ledger import holds as holding
from monitor.ledger.holds import AlreadyHeld, HoldError, NotAllowed, NotHeld, RunHeld, UnknownScope
from monitor.models import Hold
from monitor.models.hold import HoldMode, Scope

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router()
KindName = Literal["series", "suite", "site", "reporter"]
_STATUS: dict[type[HoldError], tuple[int, str]] = {
    UnknownScope: (404, "unknown_scope"),
    NotAllowed: (403, "not_allowed"),
    AlreadyHeld: (409, "already_held"),
    NotHeld: (409, "not_held"),
    RunHeld: (409, "held"),
}


class HoldOut(Schema):
    """*left*: claimed or running runs of what is held; null once the hold has ended."""

    kind: str
    name: str
    mode: str
    who: str
    why: str
    began_at: datetime
    until: datetime | None
    ended_at: datetime | None
    ended_by: str
    ended_why: str
    left: int | None = None


class HoldIn(Schema):
    kind: KindName
    name: str
    mode: Literal["pause", "drain"]
    why: str
    until: datetime | None = None


class Why(Schema):
    why: str


@router.get("", response=list[HoldOut], summary="What is held now; with ended=true all holds, newest first")
def every(
    request: HttpRequest, ended: bool = False, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[HoldOut]:
    now = timezone.now()
    visible = Hold.objects.visible_to(request.user)
    found = visible if ended else visible.at(now)
    return [shown(one, now) for one in found[:limit]]


@router.post("", response={201: HoldOut}, summary="Pause or drain a series, a suite, a site or a reporter")
def begin(request: HttpRequest, order: HoldIn) -> Status[HoldOut]:
    require_run_permission(request)
    now = timezone.now()
    until = order.until
    if until is not None and until.tzinfo is None:
        raise Refused(422, "invalid", f"until: expected a time with its offset, got {until.isoformat()}")
    try:
        scope = _whole(request, order.kind, order.name)
        made = holding.hold(
            scope, HoldMode(order.mode), who=request.user.get_username(), why=order.why, now=now, until=until
        )
    except HoldError as error:
        raise refused(error) from error
    return Status(201, shown(made, now))


@router.post("/{kind}/{name}/resume", response=HoldOut, summary="End a hold")
def resume(request: HttpRequest, kind: str, name: str, order: Why) -> HoldOut:
    require_run_permission(request)
    now = timezone.now()
    try:
        scope = _whole(request, kind, name)
        return shown(holding.resume(scope, who=request.user.get_username(), why=order.why, now=now), now)
    except HoldError as error:
        raise refused(error) from error


def refused(error: HoldError) -> Refused:
    """*error* as a problem; with the hold, where one is the cause."""
    status, code = _STATUS.get(type(error), (422, "invalid"))
    found = getattr(error, "hold", None)
    extra = {"hold": HoldOut.from_orm(found).model_dump(mode="json")} if found else {}
    return Refused(status, code, str(error), **extra)


def shown(hold: Hold, now: datetime) -> HoldOut:
    """*hold*, and how many runs are left under it if it is in force at *now*."""
    out = HoldOut.from_orm(hold)
    if hold.ended_at is None and (hold.until is None or hold.until > now):
        out.left = holding.hold_progress([hold])[0].left
    return out


def _whole(request: HttpRequest, kind: str, name: str) -> Scope:
    scope = holding.find_scope(kind, name, request.user)
    holding.check_may_hold(scope, request.user)
    return scope
