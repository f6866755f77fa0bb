"""Maintenance and pauses: lists, history, and the forms to pause, drain, resume and run."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from monitor.core.units import counted
from monitor.models import Hold, Series
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.role import identity_of
from monitor.models.site import may_manage_somewhere
from monitor.runs.ledger import holds as holding
from monitor.runs.ledger.hold_history import HoldableScopes, hold_events, holdable_scopes
from monitor.runs.ledger.hold_preview import preview_hold
from monitor.runs.ledger.holds import HoldError, NotAllowed, UnknownScope, hold_progress
from monitor.runs.ledger.run_now import run_all, run_now
from monitor.runs.maintenance.status import feed_statuses, latest_changes
from monitor.runs.maintenance.windows import open_and_planned
from monitor.web.pages.http.access import check_manageable, managers_only, members_only, wants_part
from monitor.web.pages.http.hold_form import HOURS, hold_form_context, read_end
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.updates import digest_of, is_current, live

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_ENTRIES = 100
MOST_SCOPES = 60  # of each kind
MOST_WINDOWS = 60


@members_only
@live
def page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    visible = Hold.objects.visible_to(request.user)
    active_holds = compute(request, "current-holds", lambda: hold_progress(visible.at(now))) or []
    digest = digest_of([(standing.hold.pk, standing.words) for standing in active_holds])
    if is_current(request, digest):
        return HttpResponse(status=204)
    context: dict[str, Any] = {"held": active_holds, "digest": digest, "now": now}
    if wants_part(request):
        return render(request, "parts/current_holds.html", context)
    entries = compute(request, "log", lambda: hold_events(visible, LOG_ENTRIES)) or []
    context |= {
        **(compute(request, "maintenance", lambda: _windows(request, now)) or {}),
        "log": entries,
        "log_is_full": len(entries) == LOG_ENTRIES,
        "scopes_by_kind": compute(request, "scopes", lambda: _holdable(request, now)),
        "feeds": compute(request, "feeds", lambda: feed_statuses(request.user, now)),
        "may_announce": may_manage_somewhere(request.user, CHANGE_WINDOWS),
    }
    return render(request, "pages/holds.html", context)


def _windows(request: HttpRequest, now: datetime) -> dict[str, Any]:
    """Return the context of the open and planned windows, each with its latest change."""
    windows = open_and_planned(request.user, now)
    shown_windows = windows[:MOST_WINDOWS]
    changes = latest_changes([shown.window.name for shown in shown_windows])
    return {
        "maintenance": [(shown, changes.get(shown.window.name)) for shown in shown_windows],
        "more_windows": len(windows) - len(shown_windows),
    }


def _holdable(request: HttpRequest, now: datetime) -> dict[HoldKind, HoldableScopes]:
    return holdable_scopes(request.user, now, MOST_SCOPES) if may_manage_somewhere(request.user) else {}


@members_only
def scope_page(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Show the holds of one series, suite, site or reporter, and the form to change them."""
    return _render_scope(request, _find(request, kind, name))


@members_only
@require_POST
@managers_only()
def act(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Execute a submitted form; if the order is refused, show the form again, with the error."""
    scope = _find(request, kind, name)
    verb = _VERBS.get(request.POST.get("verb", ""))
    if verb is None:
        return _render_scope(request, scope, error="expected one of: " + ", ".join(_VERBS))
    try:
        message, target = verb(request, scope, timezone.now())
    except NotAllowed as error:
        return _render_scope(request, scope, error=str(error), status=403)
    except HoldError as error:
        return _render_scope(request, scope, error=str(error))
    messages.success(request, message)
    if target is not None:
        return target
    if scope.kind == HoldKind.SERIES:
        return redirect("series", scope.name)
    return redirect("hold", scope.kind.value, scope.name)


def _find(request: HttpRequest, kind: str, name: str) -> Scope:
    try:
        return holding.find_scope(kind, name, request.user)
    except UnknownScope as error:
        raise Http404(str(error)) from error


def _render_scope(request: HttpRequest, scope: Scope, *, error: str = "", status: int = 409) -> HttpResponse:
    now = timezone.now()
    visible = Hold.objects.visible_to(request.user)
    series = scope.series().visible_to(request.user).order_by("sort_name")

    def form() -> dict[str, Any]:
        preview = preview_hold(scope, request.user, list(HOURS), now)
        return hold_form_context(request, scope, now, preview)

    context = {
        **(compute(request, "hold-form", form) or {}),
        "scope": scope,
        "crumbs": [("Maintenance and pauses", reverse("holds"))],
        "held": compute(request, "state", lambda: hold_progress(Hold.objects.at(now).of(scope))),
        "suspended_hold": compute(request, "state", lambda: _suspended(scope, now)),
        "series_of_scope": compute(request, "series", lambda: list(series)),
        "log": compute(request, "log", lambda: hold_events(visible.of(scope), LOG_ENTRIES)),
        "may_hold": may_manage_somewhere(request.user) and holding.may_hold(scope, request.user),
        "error": error,
        "now": now,
    }
    return render(request, "pages/hold.html", context, status=status if error else 200)


def _suspended(scope: Scope, now: datetime) -> Hold | None:
    """Return the hold of *scope* that is not in force because the identity of its author is suspended."""
    unended = Hold.objects.filter(ended_at=None).exclude(until__lte=now).of(scope)
    return unended.exclude(pk__in=Hold.objects.at(now).values("pk")).select_related("identity").first()


Result = tuple[str, HttpResponse | None]  # the message for the user, and where to go next


def _hold(mode: HoldMode) -> Callable[[HttpRequest, Scope, datetime], Result]:
    def begin(request: HttpRequest, scope: Scope, now: datetime) -> Result:
        holding.check_may_hold(scope, request.user)
        new_hold = holding.hold(
            scope,
            mode,
            who=request.user.get_username(),
            why=request.POST.get("why", ""),
            now=now,
            until=read_end(request, now),
            identity=identity_of(request.user),
        )
        return f"The {scope} is {HoldMode(new_hold.mode).label}.", None

    return begin


def _resume(request: HttpRequest, scope: Scope, now: datetime) -> Result:
    holding.check_may_hold(scope, request.user)
    holding.resume(scope, who=request.user.get_username(), why=request.POST.get("why", ""), now=now)
    return f"The {scope} is resumed.", None


def _run(*, force: bool) -> Callable[[HttpRequest, Scope, datetime], Result]:
    def queue(request: HttpRequest, scope: Scope, now: datetime) -> Result:
        who, why = request.user.get_username(), request.POST.get("why", "")
        if scope.kind == HoldKind.SERIES:
            series = scope.series().get()
            check_manageable(series, Series.objects.manageable_by(request.user))
            run = run_now(series, who=who, why=why, force=force, now=now)
            return f"Run of {scope.name} queued.", redirect("run", pk=run.pk)
        queued = run_all(scope, user=request.user, who=who, why=why, force=force, now=now)
        message = f"{counted(len(queued.runs), 'run')} queued"
        return message + (f", {len(queued.held)} paused series skipped." if queued.held else "."), None

    return queue


_VERBS: dict[str, Callable[[HttpRequest, Scope, datetime], Result]] = {
    "pause": _hold(HoldMode.PAUSE),
    "drain": _hold(HoldMode.DRAIN),
    "resume": _resume,
    "run": _run(force=False),
    "force": _run(force=True),
}

_MAINTENANCE = ("maintenance-window", "maintenance-new", "maintenance-edit")

entries = [NavigationEntry("Operations", "Maintenance and pauses", "holds", pages=("hold", *_MAINTENANCE))]
urlpatterns = [
    path("holds/", page, name="holds"),
    path("holds/<slug:kind>/<slug:name>/", scope_page, name="hold"),
    path("holds/<slug:kind>/<slug:name>/act/", act, name="hold-act"),
]
