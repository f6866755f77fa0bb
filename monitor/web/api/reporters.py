"""Reporters: their state; creation, enrolment codes and revocation."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.conf import settings
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import Reporter
from monitor.models.natural_order import sort_name
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.token import MANAGE
from monitor.runs.fleet import enrolment
from monitor.runs.fleet.create import MAX_CAPACITY, ForeignSite, InvalidReporter
from monitor.runs.fleet.create import create_reporter as create
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_items, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, Name, NameFilter
from monitor.web.places import reporter_details as details
from monitor.web.places.reporters import ReporterState, ReporterSummary, run_counts
from monitor.web.places.reporters import list_reporters as summaries

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.models import ReporterStatus

router = Router(tags=["reporters"])


class SpoolOut(Schema):
    """The records that the reporter had not delivered at its last exchange; *dropped_records* is a total.

    *lag_seconds* is the age of the oldest record at that time.
    """

    records: int
    bytes: int
    oldest_at: datetime | None
    lag_seconds: float
    dropped_records: int


class PolicyOut(Schema):
    status: str
    sha256: str
    error: str
    pending_approvals: int


class ClockOut(Schema):
    """The server's clock minus the reporter's, and the largest error of this offset."""

    offset_seconds: float | None
    bound_seconds: float | None


class AgentOut(Schema):
    """What an agent said at its last exchange."""

    started_at: datetime
    hostname: str
    version: str
    archive_sha256: str
    python: str
    in_flight: int
    spool: SpoolOut
    policy: PolicyOut
    clock: ClockOut


class ReporterOut(Schema):
    """A reporter; *site* is null for a Celery worker.

    *run_counts* are the ended runs of the last 24 hours by state, of the series that you may see;
    *series_count* is the number of these series. *hold* says who holds the reporter, and why; it is empty
    without a hold. *agent* is null for a Celery worker and before the first exchange.
    """

    name: str
    site: str | None
    capacity: int
    state: ReporterState
    seen_at: datetime | None
    series_count: int
    run_counts: dict[str, int]
    hold: str
    alert_count: int
    agent: AgentOut | None


class AssignmentOut(Schema):
    """The newest assignment, the version in force at the site (0: none), and why it refused the newest."""

    newest: int
    issued_at: datetime | None
    in_force: int
    error: str


class ChainOut(Schema):
    chain: uuid.UUID
    first_seen_at: datetime
    declared: int
    received: int


class MessageOut(Schema):
    at: str
    level: str
    text: str


class KeyOut(Schema):
    fingerprint: str
    method: str
    hostname: str
    enrolled_at: datetime
    revoked_at: datetime | None
    revoked_by: str


class ConflictsOut(Schema):
    """How many reports conflicted with one that was stored before, ever, and when the last one came."""

    total: int
    last_at: datetime | None


class ReporterDetailsOut(ReporterOut):
    """A reporter with its details; *keys* is null unless you may manage reporters."""

    series: list[str]
    policy_summary: Any
    assignment: AssignmentOut
    messages: list[MessageOut]
    conflicts: ConflictsOut
    chains: list[ChainOut]
    keys: list[KeyOut] | None


class ReporterIn(Body):
    """A reporter to create; *capacity* is how many runs it may run at the same time."""

    name: Name
    site: Name
    capacity: Annotated[int, Field(ge=1, le=MAX_CAPACITY)] = 4


class CodeOut(Schema):
    """An enrolment code, which is not stored: this answer alone contains it."""

    code: str
    expires_at: datetime
    command: str


class RevokedOut(Schema):
    revoked_keys: int


class ReporterList(ListOut):
    reporters: list[ReporterOut]


class ReporterQuery(Page):
    site: NameFilter = ""
    state: ReporterState | None = None


@router.get(
    "/reporters",
    response=ReporterList,
    operation_id="list_reporters",
    summary="List reporters, the worst state first",
)
def list_reporters(request: HttpRequest, query: Query[ReporterQuery]) -> HttpResponse:
    """The reporters of series that you may see, and those that you may manage."""
    visible = Reporter.objects.manageable_or_visible_to(request.user)
    if query.site:
        visible = visible.filter(site__name=query.site)
    now = timezone.now()
    reporters = [
        summary for summary in summaries(visible, request.user, now) if query.state in {None, summary.state}
    ]
    counts = run_counts(request.user, [each.reporter for each in reporters], now)

    def shown(summary: ReporterSummary) -> ReporterOut:
        return ReporterOut(**_fields(summary, counts.get(summary.reporter.pk, {})))

    return list_items(
        query,
        reporters,
        ReporterList,
        key=lambda each: (_ORDER[each.state], sort_name(each.name)),
        show=shown,
    )


_ORDER = {state: rank for rank, state in enumerate(ReporterState)}


def _require(request: HttpRequest) -> None:
    require_site_permission(request, MANAGE_REPORTERS, MANAGE)


def _find_manageable(request: HttpRequest, reporter: str) -> Reporter:
    found = _find(request, reporter)
    require_manageable(found, Reporter.objects.manageable_by(request.user))
    return found


@router.post(
    "/reporters",
    response={201: ReporterOut},
    operation_id="create_reporter",
    openapi_extra=declare(
        scope=MANAGE,
        errors={409: ["name_taken"]},
        permission=_require,
        example={"name": "ncsa-login", "site": "ncsa"},
    ),
    summary="Create a reporter for a site",
)
def create_reporter(request: HttpRequest, order: ReporterIn) -> HttpResponse:
    try:
        reporter = create(order.name, order.site, order.capacity, request.user)
    except InvalidReporter as error:
        code = "name_taken" if error.is_taken else "invalid"
        raise Refused(409 if error.is_taken else 422, code, str(error)) from error
    except ForeignSite as error:
        raise Refused(403, "not_allowed", str(error)) from error
    summary = _summary(request, reporter)
    shown = ReporterOut(**_fields(summary, _run_counts(request, reporter)))
    return created(shown, status=201, location=f"/reporters/{reporter.name}")


@router.get(
    "/reporters/{reporter}",
    response=ReporterDetailsOut,
    operation_id="show_reporter",
    openapi_extra=declare(errors={404: ["unknown_reporter"]}),
    summary="Show a reporter with its details",
)
def show_reporter(request: HttpRequest, reporter: str, query: Query[Sparse]) -> HttpResponse:
    found = _find(request, reporter)
    return show_item(query, ReporterDetailsOut(**_details(request, found)), ReporterDetailsOut)


def _details(request: HttpRequest, reporter: Reporter) -> dict[str, Any]:
    """Return the fields of ``ReporterDetailsOut``."""
    summary = _summary(request, reporter)
    chains = [
        {"chain": row.chain.uuid, "first_seen_at": row.chain.first_seen_at,
         "declared": row.chain.declared_next, "received": row.received}
        for row in details.chain_states(reporter)
    ]  # fmt: skip
    may_manage = Reporter.objects.manageable_by(request.user).filter(pk=reporter.pk).exists()
    status = summary.status
    return {
        **_fields(summary, _run_counts(request, reporter)),
        "series": [series.name for series in details.visible_series(reporter, request.user)],
        "policy_summary": status.policy_summary if status else {},
        "assignment": details.assignment_state(reporter),
        "messages": details.newest_messages(status.messages) if status else [],
        "conflicts": details.conflict_count(reporter) or {"total": 0, "last_at": None},
        "chains": chains,
        "keys": list(reporter.keys.all()[: details.LATEST_KEYS]) if may_manage else None,
    }


@router.post(
    "/reporters/{reporter}/codes",
    response={201: CodeOut},
    operation_id="create_enrolment_code",
    openapi_extra=declare(
        scope=MANAGE,
        errors={404: ["unknown_reporter"], 409: ["not_remote"]},
        permission=_require,
        subject=_find_manageable,
    ),
    summary="Make an enrolment code",
)
def create_enrolment_code(request: HttpRequest, reporter: str) -> HttpResponse:
    """Earlier codes become invalid. This answer alone contains the code."""
    found, now = subject_of(request), timezone.now()
    try:
        code = enrolment.create_code(found, request.user, now)  # type: ignore[arg-type]  # logged in
    except enrolment.NotRemote as error:
        raise Refused(409, "not_remote", str(error)) from error
    server = settings.GRIDCAST_URL or request.build_absolute_uri("/").rstrip("/")
    command = f"python3 gridcast-reporter.pyz enrol {server} {code}"
    shown = CodeOut(code=code, expires_at=now + enrolment.VALIDITY, command=command)
    return created(shown, status=201, location=f"/reporters/{reporter}")


@router.post(
    "/reporters/{reporter}/revoke",
    response=RevokedOut,
    operation_id="revoke_reporter",
    openapi_extra=declare(
        scope=MANAGE,
        errors={404: ["unknown_reporter"]},
        permission=_require,
        subject=_find_manageable,
    ),
    summary="Revoke the key and the enrolment codes",
)
def revoke_reporter(
    request: HttpRequest,
    reporter: str,
) -> dict[str, int]:
    found, who = subject_of(request), request.user.get_username()
    return {"revoked_keys": enrolment.revoke(found, who, timezone.now())}


def _find(request: HttpRequest, name: str) -> Reporter:
    visible = Reporter.objects.manageable_or_visible_to(request.user).select_related("site", "status")
    reporter = visible.filter(name=name).first()
    if reporter is None:
        raise Refused(404, "unknown_reporter", f"there is no reporter {name!r} that you may see")
    return reporter


def _summary(request: HttpRequest, reporter: Reporter) -> ReporterSummary:
    return summaries(Reporter.objects.filter(pk=reporter.pk), request.user, timezone.now())[0]


def _run_counts(request: HttpRequest, reporter: Reporter) -> Mapping[str, int]:
    return run_counts(request.user, [reporter], timezone.now()).get(reporter.pk, {})


def _fields(summary: ReporterSummary, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of ``ReporterOut``; *counts* are those of its runs."""
    return {
        "name": summary.name,
        "site": summary.site or None,
        "capacity": summary.reporter.capacity,
        "state": summary.state,
        "seen_at": summary.seen_at,
        "series_count": summary.series,
        "run_counts": dict(counts),
        "hold": summary.held,
        "alert_count": summary.alerts,
        "agent": _agent(summary.status) if summary.status else None,
    }


def _agent(status: ReporterStatus) -> dict[str, Any]:
    """Return the fields of ``AgentOut``."""
    spool = {
        "records": status.spool_records,
        "bytes": status.spool_bytes,
        "oldest_at": status.spool_oldest_at,
        "lag_seconds": status.lag_seconds,
        "dropped_records": status.dropped_records,
    }
    policy = {
        "status": status.policy_status,
        "sha256": status.policy_sha256,
        "error": status.policy_error,
        "pending_approvals": status.pending_approvals,
    }
    names = ("started_at", "hostname", "version", "archive_sha256", "python", "in_flight")
    clock = {"offset_seconds": status.clock_offset_seconds, "bound_seconds": status.clock_bound_seconds}
    return {
        **{name: getattr(status, name) for name in names},
        "spool": spool,
        "policy": policy,
        "clock": {name: value if _is_finite(value) else None for name, value in clock.items()},
    }


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
