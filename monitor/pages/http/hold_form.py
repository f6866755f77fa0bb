"""The form to pause, drain, resume and run a scope; two pages show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monitor.models import Hold
from monitor.models.hold import MAX_REASON_CHARACTERS, Scope

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest

SPANS = (("", "until resumed"), ("1", "1 hour"), ("4", "4 hours"), ("24", "1 day"), ("168", "1 week"))


def hold_form_context(request: HttpRequest, scope: Scope, now: datetime) -> dict[str, Any]:
    """Return the context of ``parts/hold_form.html``, with the values of a refused submission."""
    return {
        "scope": scope,
        "own_hold": Hold.objects.at(now).of(scope).first(),
        "spans": SPANS,
        "why_characters": MAX_REASON_CHARACTERS,
        "submitted": {"why": request.POST.get("why", ""), "hours": request.POST.get("hours", "")},
    }
