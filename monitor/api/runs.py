"""Runs: what became of every slot."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from django.utils import timezone
from ninja import Query, Router, Schema, Status

from monitor.api.auth import require_run_permission
from monitor.api.holds import KindName, refused
from monitor.api.problems import Refused
from monitor.ledger.holds import HoldError, find_scope
from monitor.ledger.run_now import run_all
from monitor.models import Run

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router()


class RunOut(Schema):
    id: uuid.UUID
    series: str
    slot: datetime
    state: str
    reason: str
    trigger: str
    stage: str
    failed_resource: str
    started_at: datetime | None
    ended_at: datetime | None

    @staticmethod
    def resolve_series(run: Run) -> str:
        return run.series.name


class RunsIn(Schema):
    kind: KindName
    name: str
    why: str
    force: bool = False


class AskedOut(Schema):
    series: str
    run: uuid.UUID
    state: str


class HeldOut(Schema):
    series: str
    reason: str


class RunsAccepted(Schema):
    runs: list[AskedOut]
    held: list[HeldOut]


@router.get("", response=list[RunOut], summary="The latest runs, newest first")
def latest(
    request: HttpRequest, series: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[Run]:
    runs = Run.objects.visible_to(request.user).ended().select_related("series").order_by("-slot")
    return list(runs.filter(series__name=series)[:limit] if series else runs[:limit])


@router.post("", response={202: RunsAccepted}, summary="Run a suite, a site or a reporter's series now")
def ask_for_runs(request: HttpRequest, order: RunsIn) -> Status[RunsAccepted]:
    """A run of every enabled series concerned that you may see. Those that are held are passed over and
    listed; with *force* they run, too."""
    require_run_permission(request)
    who = request.user.get_username()
    try:
        scope = find_scope(order.kind, order.name, request.user)
        asked = run_all(scope, user=request.user, who=who, why=order.why, force=order.force)
    except HoldError as error:
        raise refused(error) from error
    return Status(
        202,
        RunsAccepted(
            runs=[AskedOut(series=run.series.name, run=run.pk, state=run.state) for run in asked.runs],
            held=[HeldOut(series=series.name, reason=hold.reason) for series, hold in asked.held],
        ),
    )


@router.get("/{run_id}", response=RunOut, summary="One run")
def one(request: HttpRequest, run_id: uuid.UUID) -> Run:
    visible = Run.objects.visible_to(request.user).select_related("series")
    found = visible.find(run_id, timezone.now())
    if found is None:
        raise Refused(404, "not_found", f"there is no run {run_id} that you may see")
    return found
