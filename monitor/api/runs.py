"""Runs: the outcome of every slot, and running a scope now."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils import timezone
from ninja import Query, Router, Schema, Status

from monitor.api.http.auth import require_run_permission
from monitor.api.http.filters import SeriesFilter, WindowFilter
from monitor.api.http.hold_problems import KindName, refused
from monitor.api.http.lists import ListOut, Page, list_rows
from monitor.api.http.problems import Refused
from monitor.api.http.schemas import Body, Name
from monitor.ledger.holds import HoldError, find_scope
from monitor.ledger.run_now import run_all
from monitor.models import ConflictingReport, Run
from monitor.models.run import State

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["runs"])


class RunOut(Schema):
    id: uuid.UUID
    series: str
    slot: datetime
    state: State
    reason: str
    trigger: str
    stage: str
    failed_resource: str
    started_at: datetime | None
    ended_at: datetime | None

    @staticmethod
    def resolve_series(run: Run) -> str:
        return run.series.name


class RunList(ListOut):
    runs: list[RunOut]


class RunQuery(Page, SeriesFilter, WindowFilter):
    """*start* and *end* bound the slot."""

    state: State | None = None


class ConflictOut(Schema):
    """Another report of the run than the stored one; *sha256* is that of its bytes."""

    reporter: str
    received_at: datetime
    sha256: str


class RunWithConflicts(RunOut):
    """A run; *conflicts* are the reports that were kept beside its report, oldest first, at most ten."""

    conflicts: list[ConflictOut]

    @staticmethod
    def resolve_conflicts(run: Run) -> list[ConflictOut]:
        reports = ConflictingReport.objects.of(run).defer("packed")
        return [
            ConflictOut(reporter=report.reporter, received_at=report.received_at, sha256=report.digest)
            for report in reports
        ]


class RunsIn(Body):
    kind: KindName
    name: Name
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


@router.get("/runs", response=RunList, operation_id="list_runs", summary="List runs, newest slot first")
def list_runs(request: HttpRequest, query: Query[RunQuery]) -> HttpResponse:
    """Without *state*, the runs that have ended."""
    visible = Run.objects.visible_to(request.user)
    runs = visible.filter(state=query.state) if query.state else visible.ended()
    rows = query.within(query.of_series(runs), "slot").select_related("series")
    return list_rows(query, rows, RunList, order=["-slot", "-id"])


@router.post(
    "/runs",
    response={202: RunsAccepted},
    operation_id="monitor_api_runs_ask_for_runs",
    summary="Run the series of a suite, site or reporter now",
)
def queue_runs(request: HttpRequest, order: RunsIn) -> Status[RunsAccepted]:
    """Queues a run of every enabled series of the scope that you may see. Held series are skipped and listed;
    with *force* they run too."""
    require_run_permission(request)
    who = request.user.get_username()
    try:
        scope = find_scope(order.kind, order.name, request.user)
        queued = run_all(scope, user=request.user, who=who, why=order.why, force=order.force)
    except HoldError as error:
        raise refused(error) from error
    return Status(
        202,
        RunsAccepted(
            runs=[AskedOut(series=run.series.name, run=run.pk, state=run.state) for run in queued.runs],
            held=[HeldOut(series=series.name, reason=hold.reason) for series, hold in queued.held],
        ),
    )


@router.get(
    "/runs/{run_id}",
    response=RunWithConflicts,
    operation_id="monitor_api_runs_one",
    summary="Return one run",
)
def show_run(request: HttpRequest, run_id: uuid.UUID) -> Run:
    visible = Run.objects.visible_to(request.user).select_related("series")
    run = visible.find(run_id, timezone.now())
    if run is None:
        raise Refused(404, "not_found", f"there is no run {run_id} that you may see")
    return run
