"""Reporters: their state; creation, enrolment codes and revocation."""

from __future__ import annotations

import math
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone
from ninja import Router, Schema, Status

from monitor.api.http.auth import require_manageable, require_site_permission
from monitor.api.http.problems import Refused
from monitor.fleet import enrolment
from monitor.fleet.create import ForeignSite, InvalidReporter, create_reporter
from monitor.models import Reporter, Site
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.token import MANAGE
from monitor.overview import reporter_details as details
from monitor.overview.reporters import ReporterSummary, list_reporters

if TYPE_CHECKING:
    from django.http import HttpRequest

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

    *state* is ``reporting``, ``silent``, ``never_seen``, ``policy_unreadable``, ``revoked`` or
    ``not_enrolled``. *runs* are the ended runs of the last 24 hours by state, of the series that you may see;
    *series* is their number. *agent* is null for a Celery worker and before the first exchange.
    """

    name: str
    site: str | None
    capacity: int
    state: str
    seen_at: datetime | None
    series: int
    runs: dict[str, int]
    held: str
    open_alerts: int
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


class ReporterDetailsOut(ReporterOut):
    """A reporter with its details; *keys* is null unless you may manage reporters."""

    series_names: list[str]
    policy_summary: Any
    assignment: AssignmentOut
    messages: list[MessageOut]
    chains: list[ChainOut]
    keys: list[KeyOut] | None


class ReporterIn(Schema):
    name: str
    site: str
    capacity: int = 4


class CodeOut(Schema):
    """An enrolment code, which is not stored: this answer alone contains it."""

    code: str
    expires_at: datetime
    command: str


class RevokedOut(Schema):
    revoked_keys: int


@router.get("/reporters", response=list[ReporterOut], summary="List the reporters, the worst state first")
def every_reporter(request: HttpRequest) -> list[dict[str, Any]]:
    visible = Reporter.objects.manageable_or_visible_to(request.user)
    return [_fields(summary) for summary in list_reporters(visible, request.user, timezone.now())]


@router.post("/reporters", response={201: ReporterOut}, summary="Create a reporter for a site")
def add_reporter(request: HttpRequest, order: ReporterIn) -> Status[dict[str, Any]]:
    require_site_permission(request, MANAGE_REPORTERS, MANAGE)
    manageable = Site.objects.manageable_by(request.user, MANAGE_REPORTERS)
    try:
        reporter = create_reporter(order.name, order.site, order.capacity, manageable)
    except InvalidReporter as error:
        code = "name_taken" if error.is_taken else "invalid"
        raise Refused(409 if error.is_taken else 422, code, str(error)) from error
    except ForeignSite as error:
        raise Refused(403, "not_allowed", str(error)) from error
    return Status(201, _fields(_summary(request, reporter)))


@router.get("/reporters/{name}", response=ReporterDetailsOut, summary="Return one reporter with its details")
def one_reporter(request: HttpRequest, name: str) -> dict[str, Any]:
    reporter = _find(request, name)
    summary = _summary(request, reporter)
    chains = [
        {"chain": row.chain.uuid, "first_seen_at": row.chain.first_seen_at,
         "declared": row.chain.declared_next, "received": row.received}
        for row in details.chain_states(reporter)
    ]  # fmt: skip
    may_manage = Reporter.objects.manageable_by(request.user).filter(pk=reporter.pk).exists()
    status = summary.status
    return {
        **_fields(summary),
        "series_names": [series.name for series in details.visible_series(reporter, request.user)],
        "policy_summary": status.policy_summary if status else {},
        "assignment": details.assignment_state(reporter),
        "messages": details.newest_messages(status.messages) if status else [],
        "chains": chains,
        "keys": list(reporter.keys.all()[: details.LATEST_KEYS]) if may_manage else None,
    }


@router.post("/reporters/{name}/codes", response={201: CodeOut}, summary="Make an enrolment code")
def add_code(request: HttpRequest, name: str) -> Status[dict[str, Any]]:
    reporter, now = _find_manageable(request, name), timezone.now()
    try:
        code = enrolment.create_code(reporter, request.user, now)  # type: ignore[arg-type]  # logged in
    except enrolment.NotRemote as error:
        raise Refused(409, "not_remote", str(error)) from error
    server = settings.GRIDCAST_URL or request.build_absolute_uri("/").rstrip("/")
    command = f"python3 gridcast-reporter.pyz enrol {server} {code}"
    return Status(201, {"code": code, "expires_at": now + enrolment.VALIDITY, "command": command})


@router.post(
    "/reporters/{name}/revoke", response=RevokedOut, summary="Revoke the key and the enrolment codes"
)
def revoke_reporter(request: HttpRequest, name: str) -> dict[str, int]:
    reporter, who = _find_manageable(request, name), request.user.get_username()
    return {"revoked_keys": enrolment.revoke(reporter, who, timezone.now())}


def _find(request: HttpRequest, name: str) -> Reporter:
    visible = Reporter.objects.manageable_or_visible_to(request.user).select_related("site", "status")
    reporter = visible.filter(name=name).first() if "\x00" not in name else None
    if reporter is None:
        raise Refused(404, "unknown_reporter", f"there is no reporter {name!r} that you may see")
    return reporter


def _find_manageable(request: HttpRequest, name: str) -> Reporter:
    require_site_permission(request, MANAGE_REPORTERS, MANAGE)
    reporter = _find(request, name)
    require_manageable(reporter, Reporter.objects.manageable_by(request.user))
    return reporter


def _summary(request: HttpRequest, reporter: Reporter) -> ReporterSummary:
    return list_reporters(Reporter.objects.filter(pk=reporter.pk), request.user, timezone.now())[0]


def _fields(summary: ReporterSummary) -> dict[str, Any]:
    """Return the fields of ``ReporterOut``."""
    return {
        "name": summary.name,
        "site": summary.site or None,
        "capacity": summary.reporter.capacity,
        "state": summary.state.value,
        "seen_at": summary.seen_at,
        "series": summary.series,
        "runs": dict(summary.outcomes),
        "held": summary.held,
        "open_alerts": summary.alerts,
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
