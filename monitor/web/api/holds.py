"""Holds: pause, drain and resume series, suites, sites and reporters."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils import timezone
from ninja import Query, Router

from monitor.models import Hold
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.role import identity_of
from monitor.models.token import RUN
from monitor.runs.ledger import holds as holding
from monitor.runs.ledger.holds import HoldError
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter, chosen
from monitor.web.api.http.hold_problems import HoldOut, hold_out, refused
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, Choice, Name, NameFilter, RowId, Time

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["holds"])


class HoldState(StrEnum):
    IN_FORCE = "in_force"
    ALL = "all"


class HoldIn(Body):
    """The series, suite, site or reporter to hold; without *until*, until a user resumes it."""

    kind: Choice[HoldKind]
    name: Name
    mode: Choice[HoldMode]
    reason: str
    until: Time | None = None


class Resumption(Body):
    """The reason for ending a hold."""

    reason: str


class HoldList(ListOut):
    holds: list[HoldOut]


class HoldQuery(Page, WindowFilter):
    """*start* and *end* bound the time at which the hold began."""

    state: HoldState = HoldState.IN_FORCE
    kind: HoldKind | None = None
    name: NameFilter = ""


@router.get("/holds", response=HoldList, operation_id="list_holds", summary="List holds, newest first")
def list_holds(request: HttpRequest, query: Query[HoldQuery]) -> HttpResponse:
    """Without *state*, the holds in force."""
    now = timezone.now()
    visible = Hold.objects.visible_to(request.user)
    holds = (visible if query.state == HoldState.ALL else visible.at(now)).select_related("identity")
    rows = query.within(holds.filter(**chosen(kind=query.kind, name=query.name)), "began_at")
    return list_rows(query, rows, HoldList, order=["-began_at", "-id"], show=lambda hold: hold_out(hold, now))


@router.get(
    "/holds/{hold}",
    response=HoldOut,
    operation_id="show_hold",
    openapi_extra=declare(errors={404: ["unknown_hold"]}),
    summary="Show a hold",
)
def show_hold(request: HttpRequest, hold: RowId, query: Query[Sparse]) -> HttpResponse:
    found = Hold.objects.visible_to(request.user).filter(pk=hold).first()
    if found is None:
        raise Refused(404, "unknown_hold", f"there is no hold {hold} that you may see")
    return show_item(query, hold_out(found, timezone.now()), HoldOut)


@router.post(
    "/holds",
    response={201: HoldOut},
    operation_id="create_hold",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_scope"], 409: ["already_held"]},
        permission=require_site_permission,
        example={"kind": "site", "name": "ncsa", "mode": "pause", "reason": "new disks"},
    ),
    summary="Pause or drain a series, suite, site or reporter",
)
def create_hold(request: HttpRequest, order: HoldIn) -> HttpResponse:
    """A *pause* skips runs that have not started; a *drain* lets claimed ones run."""
    now = timezone.now()
    try:
        scope = _scope(request, order.kind, order.name)
        new_hold = holding.hold(
            scope,
            order.mode,
            who=request.user.get_username(),
            why=order.reason,
            now=now,
            until=order.until,
            identity=identity_of(request.user),
        )
    except HoldError as error:
        raise refused(error) from error
    return created(hold_out(new_hold, now), status=201, location=f"/holds/{new_hold.pk}")


def _named_scope(request: HttpRequest, kind: HoldKind, name: str) -> Scope:
    try:
        return _scope(request, kind, name)
    except HoldError as error:
        raise refused(error) from error


@router.post(
    "/holds/{kind}/{name}/resume",
    response=HoldOut,
    operation_id="end_hold",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_scope"], 409: ["not_held"]},
        permission=require_site_permission,
        subject=_named_scope,
        example={"reason": "disks replaced"},
    ),
    summary="End a hold",
)
def end_hold(
    request: HttpRequest,
    kind: HoldKind,
    name: str,
    order: Resumption,
) -> HoldOut:
    """Runs that become due start again, unless another hold covers them."""
    scope, now = subject_of(request), timezone.now()
    try:
        hold = holding.resume(scope, who=request.user.get_username(), why=order.reason, now=now)
        return hold_out(hold, now)
    except HoldError as error:
        raise refused(error) from error


def _scope(request: HttpRequest, kind: str, name: str) -> Scope:
    scope = holding.find_scope(kind, name, request.user)
    holding.check_may_hold(scope, request.user)
    return scope
