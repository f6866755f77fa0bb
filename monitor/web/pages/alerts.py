"""Alerts: open ones first, then resolved ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.analysis.alerts.acknowledge import acknowledge as acknowledge_alert
from monitor.analysis.alerts.listing import listed
from monitor.models import Alert, AlertRule
from monitor.models.site import may_manage_somewhere
from monitor.web.pages.http.access import check_manageable, managers_only, members_only, wants_part
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.updates import digest_of, is_current, live

OPEN_A_PAGE = 50
MOST_CLOSED = 50


@members_only
@live
def page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    newest = Alert.objects.visible_to(request.user).exclude(closed_at=None).order_by("-closed_at", "-pk")
    opened = compute(request, "open", lambda: _open(request, now)) or {"open": [], "open_count": 0}
    closed = compute(request, "closed", lambda: listed(newest[:MOST_CLOSED], now)) or []
    digest = digest_of(
        [opened["open_count"]]
        + [
            (
                row.alert.pk,
                row.alert.acknowledged_at,
                row.alert.closed_at,
                row.streak,
                row.notifications,
                row.alert.incident_id,
                row.alert.incident is not None and row.alert.incident.is_held,
            )
            for row in (*opened["open"], *closed)
        ]
    )
    if is_current(request, digest):
        return HttpResponse(status=204)
    shown = [row.alert.pk for row in opened["open"]]
    rules = AlertRule.objects.visible_to(request.user).filter(enabled=True)
    context = {
        **opened,
        "closed": closed,
        "closed_is_full": len(closed) == MOST_CLOSED,
        "rules": compute(request, "rules", rules.count),
        "acknowledgeable": compute(request, "open", lambda: _acknowledgeable(request, shown)),
        "digest": digest,
        "now": timezone.now(),
    }
    return render(request, "parts/alerts.html" if wants_part(request) else "pages/alerts.html", context)


def _open(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """Return the context of the page of open alerts that the query string selects."""
    alerts = Alert.objects.visible_to(request.user).open()
    open_count = alerts.count()
    pages = max(1, -(-open_count // OPEN_A_PAGE))
    number = min(max(page_number(request.GET.get("page", "")), 1), pages)
    last = number * OPEN_A_PAGE
    rows = listed(alerts.order_by("-opened_at", "-pk")[last - OPEN_A_PAGE : last], now)
    return {"open": rows, "open_count": open_count, "page": number, "pages": pages}


def _acknowledgeable(request: HttpRequest, keys: Sequence[int]) -> frozenset[int]:
    """Return those of *keys*, of alerts, that the user may acknowledge."""
    if not may_manage_somewhere(request.user):
        return frozenset()
    pending = Alert.objects.manageable_by(request.user).open().filter(pk__in=keys, acknowledged_at=None)
    return frozenset(pending.values_list("pk", flat=True))


@members_only
@require_POST
@managers_only()
def acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    """Acknowledge an open alert; the first acknowledgement stays."""
    alert = get_object_or_404(Alert.objects.visible_to(request.user), pk=pk)
    check_manageable(alert, Alert.objects.manageable_by(request.user))
    if not acknowledge_alert(alert, request.user.get_username(), timezone.now()):
        messages.info(request, f"The alert of {alert.subject} is resolved or acknowledged already.")
    return redirect("alerts")


entries = [NavigationEntry("Status", "Alerts", "alerts")]
urlpatterns = [
    path("alerts/", page, name="alerts"),
    path("alerts/<int:pk>/acknowledge/", acknowledge, name="alert-acknowledge"),
]
