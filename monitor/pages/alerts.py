"""Alerts: the open ones, and those that were."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from monitor.alerts.listing import listed
from monitor.models import Alert, AlertRule
from monitor.pages.access import members_only, wants_part

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_OPEN = 500
MOST_CLOSED = 50


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """The page, or its lists alone; nothing at all (204) when a reader has seen the newest already."""
    visible = Alert.objects.visible_to(request.user)
    is_open = listed(visible.open().order_by("-opened_at", "-pk")[:MOST_OPEN])
    closed = listed(visible.exclude(closed_at=None).order_by("-closed_at", "-pk")[:MOST_CLOSED])
    seen = [(one.alert.pk, one.alert.closed_at, one.notifications) for one in (*is_open, *closed)]
    digest = hashlib.blake2s(repr(seen).encode(), digest_size=8).hexdigest()
    if wants_part(request) and request.GET.get("seen") == digest:
        return HttpResponse(status=204)
    context = {
        "open": is_open,
        "closed": closed,
        "closed_is_full": len(closed) == MOST_CLOSED,
        "rules": AlertRule.objects.filter(enabled=True).count(),
        "digest": digest,
        "now": timezone.now(),
    }
    return render(request, "parts/alerts.html" if wants_part(request) else "pages/alerts.html", context)


def count(request: HttpRequest) -> dict[str, Any]:
    """Context of every template: ``open_alerts``, counted only where a template shows it."""

    def open_alerts() -> int:
        return Alert.objects.visible_to(request.user).open().count()

    found: dict[str, Callable[[], int]] = {"open_alerts": open_alerts}
    return found
