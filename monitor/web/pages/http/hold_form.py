"""The form to pause, drain, resume and run a scope; two pages show it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from monitor.core.units import counted
from monitor.models import Hold
from monitor.models.hold import MAX_REASON_CHARACTERS, Scope
from monitor.runs.ledger.holds import InvalidRequest
from monitor.web.charts.time_range import InvalidRange, page_time
from monitor.web.pages.http.reader import zone

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.runs.ledger.hold_preview import HoldPreview

HOURS = {1: "1 hour", 2: "2 hours", 4: "4 hours", 8: "8 hours", 24: "1 day", 168: "1 week"}
USUAL_HOURS = "2"
UNLIMITED = "unlimited"


def read_end(request: HttpRequest, now: datetime) -> datetime | None:
    """Return the end of the pause that the form asks for; None: until it is resumed.

    Raises:
        InvalidRequest: the form has neither a listed duration nor a time.
    """
    try:
        until = page_time("until", request.POST.get("until", ""), zone(request))
    except InvalidRange as error:
        raise InvalidRequest(str(error)) from error
    if until is not None:
        return until
    hours = request.POST.get("hours", USUAL_HOURS)
    if hours == UNLIMITED:
        return None
    if hours not in map(str, HOURS):
        raise InvalidRequest(f"duration: expected one of the listed values, got {hours!r}")
    return now + timedelta(hours=int(hours))


def hold_form_context(
    request: HttpRequest, scope: Scope, now: datetime, preview: HoldPreview | None = None
) -> dict[str, Any]:
    """Return the context of ``parts/hold_form.html``, with the values of a refused submission.

    With a *preview*, each duration tells how many runs it would skip.
    """
    counts = preview.runs if preview else {}
    spans = [
        (str(hours), f"{label}{_skips(counts[hours])}" if hours in counts else label)
        for hours, label in HOURS.items()
    ]
    return {
        "scope": scope,
        "own_hold": Hold.objects.at(now).of(scope).first(),
        "spans": [*spans, (UNLIMITED, "until resumed")],
        "preview": preview,
        "why_characters": MAX_REASON_CHARACTERS,
        "submitted": {
            "why": request.POST.get("why", ""),
            "hours": request.POST.get("hours", USUAL_HOURS),
            "until": request.POST.get("until", ""),
        },
    }


def _skips(runs: int) -> str:
    return f" ({counted(runs, 'run')})"
