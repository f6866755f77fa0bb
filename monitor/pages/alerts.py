"""Alerts: open ones first, then resolved ones."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.alerts.listing import listed
from monitor.models import Alert, AlertRule
from monitor.models.site import may_manage_somewhere
from monitor.pages.http.access import check_manageable, managers_only, members_only, wants_part
from monitor.pages.http.navigation import NavigationEntry
from monitor.pages.http.paging import page_number
from monitor.pages.http.updates import digest_of, is_current, live

OPEN_A_PAGE = 50
MOST_CLOSED = 50


@members_only
@live
def page(request: HttpRequest) -> HttpResponse:
    visible = Alert.objects.visible_to(request.user)
    open_count = visible.open().count()
    pages = max(1, -(-open_count // OPEN_A_PAGE))
    number = min(max(page_number(request.GET.get("page", "")), 1), pages)
    last = number * OPEN_A_PAGE
    now = timezone.now()
    is_open = listed(visible.open().order_by("-opened_at", "-pk")[last - OPEN_A_PAGE : last], now)
    closed = listed(visible.exclude(closed_at=None).order_by("-closed_at", "-pk")[:MOST_CLOSED], now)
    digest = digest_of(
        [open_count]
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
            for row in (*is_open, *closed)
        ]
    )
    if is_current(request, digest):
        return HttpResponse(status=204)
    context = {
        "open": is_open,
        "open_count": open_count,
        "page": number,
        "pages": pages,
        "closed": closed,
        "closed_is_full": len(closed) == MOST_CLOSED,
        "rules": AlertRule.objects.visible_to(request.user).filter(enabled=True).count(),
        "acknowledgeable": _acknowledgeable(request, [row.alert.pk for row in is_open]),
        "digest": digest,
        "now": timezone.now(),
    }
    return render(request, "parts/alerts.html" if wants_part(request) else "pages/alerts.html", context)


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
    if not Alert.objects.filter(pk=pk).acknowledge(request.user.get_username(), timezone.now()):
        messages.info(request, f"The alert of {alert.subject} is resolved or acknowledged already.")
    return redirect("alerts")


entries = [NavigationEntry("Status", "Alerts", "alerts")]
urlpatterns = [
    path("alerts/", page, name="alerts"),
    path("alerts/<int:pk>/acknowledge/", acknowledge, name="alert-acknowledge"),
]
