"""The audit record: changes and denied attempts, for operators and administrators."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from monitor.models import AuditEvent
from monitor.models.audit_event import VIEW_AUDIT, AuditOutcome
from monitor.pages.http.access import members_only
from monitor.pages.http.navigation import NavigationEntry, with_permission

EVENTS_A_PAGE = 100
MOST_ID = 2**63


@members_only
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the newest events that the query string selects, so that the address is a permalink."""
    if not request.user.has_perm(VIEW_AUDIT):
        raise PermissionDenied("The audit record is for operators and administrators.")
    user = request.GET.get("user", "").replace("\x00", "")
    outcome, before = request.GET.get("outcome", ""), request.GET.get("before", "")
    events = AuditEvent.objects.visible_to(request.user).order_by("-pk")
    if user:
        events = events.filter(user=user)
    if outcome in AuditOutcome.values:
        events = events.filter(outcome=outcome)
    if before.isascii() and before.isdecimal() and int(before[:30]) < MOST_ID:
        events = events.filter(pk__lt=int(before))
    shown = list(events[: EVENTS_A_PAGE + 1])
    context = {
        "events": shown[:EVENTS_A_PAGE],
        "before": shown[EVENTS_A_PAGE - 1].pk if len(shown) > EVENTS_A_PAGE else None,
        "user_name": user,
        "outcome": outcome,
        "outcomes": AuditOutcome.values,
    }
    return render(request, "pages/audit.html", context)


entries = [NavigationEntry("Operations", "Audit", "audit", permits=with_permission(VIEW_AUDIT))]
urlpatterns = [path("audit/", page, name="audit")]
