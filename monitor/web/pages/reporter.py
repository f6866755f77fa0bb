"""One reporter: its state, policy, assignment, chains and runs; codes and revocation for administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.analysis.alerts.listing import listed
from monitor.models import Alert, Reporter
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.site import OPERATE, may_manage_somewhere
from monitor.runs.fleet import enrolment
from monitor.web.pages.http.access import check_manageable, managers_only, members_only, wants_part
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.updates import digest_of, is_current, live
from monitor.web.places import reporter_details as details
from monitor.web.places.reporters import list_reporters, server_archive_sha256
from monitor.web.places.site_policy import policy_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from monitor.models import ReporterStatus, Series


@members_only
@live
def page(request: HttpRequest, name: str) -> HttpResponse:
    context = _context(request, _find(request, name), timezone.now())
    if is_current(request, context["digest"]):
        return HttpResponse(status=204)
    return render(request, "parts/reporter.html" if wants_part(request) else "pages/reporter.html", context)


@members_only
@require_POST
@managers_only(MANAGE_REPORTERS)
def create_code(request: HttpRequest, name: str) -> HttpResponse:
    """Show the page with a new enrolment code; only this answer contains the code."""
    reporter, now = _find_manageable(request, name), timezone.now()
    try:
        code = enrolment.create_code(reporter, request.user, now)  # type: ignore[arg-type]  # logged in
    except enrolment.NotRemote as error:
        messages.error(request, str(error))
        return redirect("reporter", reporter.name)
    context = _context(request, reporter, now)
    server = settings.GRIDCAST_URL or request.build_absolute_uri("/").rstrip("/")
    new = {"code": code, "server": server, "valid_until": now + enrolment.VALIDITY}
    return render(request, "pages/reporter.html", {**context, "new_code": new})


@members_only
@require_POST
@managers_only(MANAGE_REPORTERS)
def revoke(request: HttpRequest, name: str) -> HttpResponse:
    """Revoke the key and the open codes, if the form was confirmed."""
    reporter = _find_manageable(request, name)
    if request.POST.get("confirmed") != reporter.name:
        messages.error(request, f"Not revoked: confirm with the name of the reporter, {reporter.name}.")
    elif enrolment.revoke(reporter, request.user.get_username(), timezone.now()):
        messages.success(request, f"The key of {reporter.name} is revoked. Its next request is refused.")
    else:
        messages.success(request, f"{reporter.name} has no valid key; open enrolment codes are withdrawn.")
    return redirect("reporter", reporter.name)


def _find(request: HttpRequest, name: str) -> Reporter:
    visible = Reporter.objects.manageable_or_visible_to(request.user).select_related("site", "status")
    return get_object_or_404(visible, name=name)


def _find_manageable(request: HttpRequest, name: str) -> Reporter:
    reporter = _find(request, name)
    check_manageable(reporter, Reporter.objects.manageable_by(request.user))
    return reporter


def _may(request: HttpRequest, reporter: Reporter, permission: str) -> bool:
    """Return whether the user of *request* has *permission* for *reporter*."""
    manageable = Reporter.objects.manageable_by(request.user, permission).filter(pk=reporter.pk)
    return may_manage_somewhere(request.user, permission) and manageable.exists()


def _context(request: HttpRequest, reporter: Reporter, now: datetime) -> dict[str, Any]:
    may_manage = _may(request, reporter, MANAGE_REPORTERS)
    parts = _parts(request, reporter, now)
    of_agent = _parts_of_agent(request, reporter, parts["series"], may_manage, now)
    summary, conflicts = parts["summary"], parts["conflicts"]
    seen = [
        summary and (summary.state, summary.seen_at, summary.latest, summary.held),
        (len(parts["series"]), of_agent["open_codes"]),
        of_agent["assignment"],
        [(row.chain.pk, row.chain.declared_next, row.received) for row in of_agent["chains"]],
        [(row.pk, row.state) for row in (*parts["runs"], *of_agent["skipped"])],
        [(row.pk, row.revoked_at) for row in of_agent["keys"]],
        [row.alert.pk for row in parts["alerts_of_reporter"]],
        conflicts.total if conflicts else 0,
    ]
    return {
        **parts,
        **of_agent,
        "crumbs": crumbs_of("reporters"),
        "reporter": reporter,
        "may_manage": may_manage,
        "may_hold": _may(request, reporter, OPERATE),
        "server_archive": server_archive_sha256(),
        "digest": digest_of(seen),
        "now": now,
    }


def _parts(request: HttpRequest, reporter: Reporter, now: datetime) -> dict[str, Any]:
    """Return what may fail on its own."""
    series = compute(request, "series", lambda: details.visible_series(reporter, request.user)) or []
    own, alerts = Reporter.objects.filter(pk=reporter.pk), Alert.objects.open().filter(reporter=reporter)
    return {
        "summary": compute(request, "state", lambda: list_reporters(own, request.user, now)[0]),
        "conflicts": compute(request, "conflicts", lambda: details.conflict_count(reporter)),
        "alerts_of_reporter": compute(request, "alerts", lambda: listed(alerts, now)) or [],
        "series": series,
        "runs": compute(request, "runs", lambda: details.latest_runs(series, now)) or [],
    }


def _parts_of_agent(
    request: HttpRequest, reporter: Reporter, series: Sequence[Series], may_manage: bool, now: datetime
) -> dict[str, Any]:
    """Return what may fail on its own, of an agent; of other reporters, nothing."""
    if not reporter.is_remote:
        empty = ("chains", "skipped", "policy", "messages_of_agent", "keys")
        return {"status": None, "assignment": None, "open_codes": 0, **{name: [] for name in empty}}
    status: ReporterStatus | None = getattr(reporter, "status", None)
    codes = reporter.enrolment_codes.filter(used_at=None, expires_at__gt=now)
    keys = reporter.keys.all()[: details.LATEST_KEYS]
    return {
        "status": status,
        "assignment": compute(request, "assignment", lambda: details.assignment_state(reporter)),
        "chains": compute(request, "chains", lambda: details.chain_states(reporter)) or [],
        "skipped": compute(request, "skipped", lambda: details.slots_skipped_by_policy(series, now)) or [],
        "policy": compute(request, "policy", lambda: policy_lines(status.policy_summary) if status else []),
        "messages_of_agent": compute(
            request, "messages", lambda: details.newest_messages(status.messages) if status else []
        ),
        "keys": (compute(request, "keys", lambda: list(keys)) or []) if may_manage else [],
        "open_codes": (compute(request, "keys", codes.count) or 0) if may_manage else 0,
    }


urlpatterns = [
    path("reporters/<slug:name>/", page, name="reporter"),
    path("reporters/<slug:name>/code/", create_code, name="reporter-code"),
    path("reporters/<slug:name>/revoke/", revoke, name="reporter-revoke"),
]
