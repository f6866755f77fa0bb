"""Runs: the outcome of every slot, and running a scope now."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.models import ConflictingReport, Run, Series
from monitor.models.hold import HoldKind
from monitor.models.run import State
from monitor.models.token import RUN
from monitor.runs.ledger.holds import HoldError, find_scope
from monitor.runs.ledger.run_now import run_all, run_now
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import SeriesFilter, WindowFilter, chosen
from monitor.web.api.http.find_metrics import find_series
from monitor.web.api.http.hold_problems import refused
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, Choice, Name, NameFilter

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["runs"])


class RunOut(Schema):
    """What became of a slot of a series; times are null until they have come."""

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

    reporter: NameFilter = ""
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


class RunRequest(Body):
    """Why a series is to run now; a held one runs only with *force*."""

    reason: str = ""
    force: bool = False


class RunsRequest(Body):
    """The series, suite, site or reporter whose series are to run now; held series run only with *force*."""

    kind: Choice[HoldKind]
    name: Name
    reason: str
    force: bool = False


class HeldOut(Schema):
    """A series that was left out because of a hold."""

    series: str
    hold: str


class RequestedRuns(Schema):
    """The runs that were queued, and the series that are held."""

    runs: list[RunOut]
    held: list[HeldOut]


@router.get("/runs", response=RunList, operation_id="list_runs", summary="List runs, newest slot first")
def list_runs(request: HttpRequest, query: Query[RunQuery]) -> HttpResponse:
    """Without *state*, the runs that have ended."""
    visible = Run.objects.visible_to(request.user)
    runs = visible.filter(state=query.state) if query.state else visible.ended()
    runs = runs.filter(**chosen(series__reporter__name=query.reporter))
    rows = query.within(query.of_series(runs), "slot").select_related("series")
    return list_rows(query, rows, RunList, order=["-slot", "-id"])


@router.post(
    "/runs",
    response={202: RequestedRuns},
    operation_id="request_runs",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_scope"], 409: ["held"]},
        permission=require_site_permission,
        example={"kind": "site", "name": "ncsa", "reason": "new disks"},
    ),
    summary="Run the series of a suite, site or reporter now",
)
def request_runs(request: HttpRequest, order: RunsRequest) -> HttpResponse:
    """Queues a run of every enabled series of the scope that you may see. Held series are skipped and listed;
    with *force* they run too."""
    who = request.user.get_username()
    try:
        scope = find_scope(order.kind, order.name, request.user)
        queued = run_all(scope, user=request.user, who=who, why=order.reason, force=order.force)
    except HoldError as error:
        raise refused(error) from error
    shown = RequestedRuns.model_construct(
        runs=[RunOut.from_orm(run) for run in queued.runs],
        held=[HeldOut(series=series.name, hold=hold.reason) for series, hold in queued.held],
    )
    query = urlencode({order.kind.value: order.name, "state": State.EXPECTED.value})
    return created(shown, status=202, location=f"/runs?{query}")


def _manageable(request: HttpRequest, series: str) -> Series:
    found = find_series(request, series)
    require_manageable(found, Series.objects.manageable_by(request.user))
    return found


@router.post(
    "/series/{series}/runs",
    response={202: RunOut},
    operation_id="request_run",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_series"], 409: ["held"]},
        permission=require_site_permission,
        subject=_manageable,
        example={"reason": "new disks"},
    ),
    summary="Run a series now",
)
def request_run(
    request: HttpRequest,
    series: str,
    order: RunRequest | None = None,
) -> HttpResponse:
    """The run that already waits, or a new one; it starts when the series is not running."""
    found, order = subject_of(request), order or RunRequest()
    try:
        run = run_now(found, who=request.user.get_username(), why=order.reason, force=order.force)
    except HoldError as error:
        raise refused(error) from error
    return created(RunOut.from_orm(run), status=202, location=f"/runs/{run.pk}")


@router.get(
    "/runs/{run}",
    response=RunWithConflicts,
    operation_id="show_run",
    openapi_extra=declare(errors={404: ["unknown_run"]}),
    summary="Show a run",
)
def show_run(request: HttpRequest, run: uuid.UUID, query: Query[Sparse]) -> HttpResponse:
    visible = Run.objects.visible_to(request.user).select_related("series")
    found = visible.find(run, timezone.now())
    if found is None:
        raise Refused(404, "unknown_run", f"there is no run {run} that you may see")
    return show_item(query, found, RunWithConflicts)
