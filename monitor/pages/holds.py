"""What is held or planned: the lists, the log, and the forms to pause, drain, resume and run."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.ledger import holds as holding
from monitor.ledger.hold_history import hold_events, holdable_scopes
from monitor.ledger.holds import HoldError, InvalidRequest, UnknownScope, hold_progress
from monitor.ledger.maintenance import open_and_planned
from monitor.ledger.run_now import run_all, run_now
from monitor.models import Hold
from monitor.models.hold import MAX_REASON_CHARACTERS, HoldKind, HoldMode, Scope
from monitor.pages.access import members_only, wants_part

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_ENTRIES = 100
SPANS = (("", "until resumed"), ("1", "1 hour"), ("4", "4 hours"), ("24", "1 day"), ("168", "1 week"))


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """What is held, or that alone; nothing at all (204) when a reader has seen the newest already."""
    now = timezone.now()
    visible = Hold.objects.visible_to(request.user)
    held = hold_progress(visible.at(now))
    digest = hashlib.blake2s(
        repr([(one.hold.pk, one.words) for one in held]).encode(), digest_size=8
    ).hexdigest()
    if wants_part(request) and request.GET.get("seen") == digest:
        return HttpResponse(status=204)
    context: dict[str, Any] = {"held": held, "digest": digest, "now": now}
    if wants_part(request):
        return render(request, "parts/held.html", context)
    entries = hold_events(visible, LOG_ENTRIES)
    more = {
        "log": entries,
        "log_is_full": len(entries) == LOG_ENTRIES,
        "places": holdable_scopes(request.user, now),
        "works": open_and_planned(request.user, now),
    }
    return render(request, "pages/holds.html", {**context, **more})


@members_only
def scope(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """One series, suite, site or reporter: what holds it, and the form to change that."""
    return _shown(request, _find(request, kind, name))


@members_only
@require_POST
@permission_required("monitor.run_series", raise_exception=True)
def act(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Do what a form asks for; what cannot be done is said above the form, with what was typed."""
    found = _find(request, kind, name)
    verb = _VERBS.get(request.POST.get("verb", ""))
    if verb is None:
        return _shown(request, found, error="expected one of: " + ", ".join(_VERBS))
    try:
        said, to = verb(request, found, timezone.now())
    except HoldError as error:
        return _shown(request, found, error=str(error))
    messages.success(request, said)
    return to or (
        redirect("series", found.name) if found.kind == HoldKind.SERIES else redirect("hold", *_of(found))
    )


def forms(request: HttpRequest, scope: Scope, now: datetime) -> dict[str, Any]:
    """The context of ``parts/hold_form.html``."""
    return {
        "scope": scope,
        "own_hold": Hold.objects.at(now).of(scope).first(),
        "spans": SPANS,
        "why_characters": MAX_REASON_CHARACTERS,
        "typed": {"why": request.POST.get("why", ""), "hours": request.POST.get("hours", "")},
    }


def _find(request: HttpRequest, kind: str, name: str) -> Scope:
    try:
        return holding.find_scope(kind, name, request.user)
    except UnknownScope as error:
        raise Http404(str(error)) from error


def _shown(request: HttpRequest, found: Scope, *, error: str = "") -> HttpResponse:
    now = timezone.now()
    mine = found.series().visible_to(request.user)
    context = {
        **forms(request, found, now),
        "held": hold_progress(Hold.objects.at(now).of(found)),
        "concerned": mine.order_by("name"),
        "log": hold_events(Hold.objects.visible_to(request.user).of(found), LOG_ENTRIES),
        "error": error,
        "now": now,
    }
    return render(request, "pages/hold.html", context, status=409 if error else 200)


Answer = tuple[str, HttpResponse | None]


def _hold(mode: HoldMode) -> Callable[[HttpRequest, Scope, datetime], Answer]:
    def begin(request: HttpRequest, found: Scope, now: datetime) -> Answer:
        holding.check_may_hold(found, request.user)
        made = holding.hold(
            found,
            mode,
            who=_who(request),
            why=request.POST.get("why", ""),
            now=now,
            until=_until(request, now),
        )
        return f"The {found} is {HoldMode(made.mode).label}.", None

    return begin


def _resume(request: HttpRequest, found: Scope, now: datetime) -> Answer:
    holding.check_may_hold(found, request.user)
    holding.resume(found, who=_who(request), why=request.POST.get("why", ""), now=now)
    return f"The {found} is resumed.", None


def _run(*, force: bool) -> Callable[[HttpRequest, Scope, datetime], Answer]:
    def ask(request: HttpRequest, found: Scope, now: datetime) -> Answer:
        why = request.POST.get("why", "")
        if found.kind == HoldKind.SERIES:
            run = run_now(found.series().get(), who=_who(request), why=why, force=force, now=now)
            return f"A run of {found.name} was asked for.", redirect("run", pk=run.pk)
        asked = run_all(found, user=request.user, who=_who(request), why=why, force=force, now=now)
        said = f"{len(asked.runs)} run{'' if len(asked.runs) == 1 else 's'} asked for"
        return said + (f", {len(asked.held)} series passed over: held." if asked.held else "."), None

    return ask


_VERBS: dict[str, Callable[[HttpRequest, Scope, datetime], Answer]] = {
    "pause": _hold(HoldMode.PAUSE),
    "drain": _hold(HoldMode.DRAIN),
    "resume": _resume,
    "run": _run(force=False),
    "force": _run(force=True),
}


def _who(request: HttpRequest) -> str:
    return request.user.get_username()


def _until(request: HttpRequest, now: datetime) -> datetime | None:
    hours = request.POST.get("hours", "")
    if hours not in dict(SPANS):
        raise InvalidRequest(f"for how long: expected one of those in the list, got {hours!r}")
    return now + timedelta(hours=int(hours)) if hours else None


def _of(found: Scope) -> tuple[str, str]:
    return found.kind.value, found.name
