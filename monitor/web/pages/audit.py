"""The audit record: changes and denied attempts, for operators and administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from monitor.depot.access.audit_list import AuditFilter, audit_csv, selected_events
from monitor.models import AuditEvent
from monitor.models.audit_event import VIEW_AUDIT, AuditChannel, AuditOutcome
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry, with_permission
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import time_range

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from monitor.web.charts.time_range import PageRange

EVENTS_A_PAGE = 100
MOST_ID = 2**63
DEFAULT_RANGE = "all"


@members_only
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the newest events that the query string selects, so that the address is a permalink."""
    chosen_range = _range(request, timezone.now())
    chosen = _filter(request, chosen_range)
    before = request.GET.get("before", "")
    events = selected_events(chosen, AuditEvent.objects.visible_to(request.user))
    if before.isascii() and before.isdecimal() and int(before[:30]) < MOST_ID:
        events = events.filter(pk__lt=int(before))
    shown = compute(request, "events", lambda: list(events[: EVENTS_A_PAGE + 1])) or []
    context = {
        "time_range": chosen_range,
        "events": shown[:EVENTS_A_PAGE],
        "before": shown[EVENTS_A_PAGE - 1].pk if len(shown) > EVENTS_A_PAGE else None,
        "is_first_page": not before,
        "fields": _fields(chosen),
    }
    return render(request, "pages/audit.html", context)


@members_only
@require_safe
@few_at_once
def table(request: HttpRequest) -> HttpResponse:
    """Return the events that the query string selects as CSV, newest first."""
    now = timezone.now()
    chosen = _range(request, now)
    visible = AuditEvent.objects.visible_to(request.user)
    text = audit_csv(selected_events(_filter(request, chosen), visible))
    name = f"audit-{chosen.file_label}-{now:%Y-%m-%d}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _range(request: HttpRequest, now: datetime) -> PageRange:
    """Return the time range of *request*; refuse users that may not see the record."""
    if not request.user.has_perm(VIEW_AUDIT):
        raise PermissionDenied("The audit record is for operators and administrators.")
    return time_range(request, now, default=DEFAULT_RANGE)


def _filter(request: HttpRequest, chosen: PageRange) -> AuditFilter:
    names = ("user", "token", "action", "subject", "outcome", "channel")
    texts = {name: request.GET.get(name, "").replace("\x00", "").strip() for name in names}
    return AuditFilter(end=chosen.end, start=chosen.start, **texts)


def _fields(chosen: AuditFilter) -> Sequence[FilterField]:
    return [
        FilterField("user", "User", chosen.user),
        FilterField("token", "Token", chosen.token),
        FilterField("action", "Action", chosen.action),
        FilterField("subject", "Object", chosen.subject),
        FilterField("outcome", "Outcome", chosen.outcome, options=_options(AuditOutcome.values)),
        FilterField("channel", "By", chosen.channel, options=_options(AuditChannel.values)),
    ]


def _options(values: Sequence[str]) -> list[tuple[str, str]]:
    return [("", "all"), *((value, value) for value in values)]


entries = [NavigationEntry("Operations", "Audit", "audit", permits=with_permission(VIEW_AUDIT))]
urlpatterns = [
    path("audit/", page, name="audit"),
    path("audit/audit.csv", table, name="audit-table"),
]
