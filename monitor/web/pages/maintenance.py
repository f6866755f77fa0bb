"""Maintenance windows: one with its next times and its history, the form of it, and the iCalendar file."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from monitor.analysis.availability.declare import announce_or_declare, withdraw_and_recompute
from monitor.analysis.availability.recompute import InvalidRecomputation
from monitor.models import MaintenanceWindow, Site
from monitor.models.hold import MAX_REASON_CHARACTERS
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.site import may_manage_everywhere, may_manage_somewhere
from monitor.runs.maintenance import announcements
from monitor.runs.maintenance.announcements import check_may_announce
from monitor.runs.maintenance.changes import (
    DECLARED,
    MaintenanceError,
    NotPermitted,
    Reason,
)
from monitor.runs.maintenance.listing import MaintenanceState, listed_window
from monitor.runs.maintenance.status import window_changes
from monitor.runs.maintenance.times import Occurrence, next_occurrences
from monitor.runs.maintenance.windows import times_of
from monitor.runs.maintenance.write_calendar import CONTENT_TYPE, calendar_for_user
from monitor.web.pages.http.access import check_manageable, managers_only, members_only
from monitor.web.pages.http.maintenance_form import MaintenanceForm, initial_values, local_text
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.reader import zone, zone_name, zone_names
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from monitor.runs.maintenance.times import WindowTimes

OCCURRENCES = 5  # of a preview
MOST_CHANGES = 50
USUAL_HOURS = 4
SAVE = "save"
_METHODS = ["GET", "HEAD", "POST"]


@members_only
@require_safe
def calendar(request: HttpRequest) -> HttpResponse:
    """Answer with the windows that the user may see, as an iCalendar file."""
    data = calendar_for_user(MaintenanceWindow.objects.all(), request.user, timezone.now())
    return HttpResponse(data, content_type=CONTENT_TYPE)


@members_only
@require_safe
def page(request: HttpRequest, name: str) -> HttpResponse:
    return _shown(request, _found(request, name))


@members_only
@managers_only(CHANGE_WINDOWS)
@require_http_methods(_METHODS)
def new(request: HttpRequest) -> HttpResponse:
    """Show, preview or announce a window; *site* in the query string is chosen at first."""
    start = timezone.now().replace(minute=0, second=0) + timedelta(hours=1)
    initial = {
        "sites": request.GET.getlist("site"),
        "starts_at": local_text(start, zone(request)),
        "ends_at": local_text(start + timedelta(hours=USUAL_HOURS), zone(request)),
        "zone": zone_name(request),
        "hours": USUAL_HOURS,
    }
    return _edited(request, None, initial)


@members_only
@managers_only(CHANGE_WINDOWS)
@require_http_methods(_METHODS)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    window = _manageable(request, name)
    return _edited(request, window, initial_values(window, zone(request)))


@members_only
@require_POST
@managers_only(CHANGE_WINDOWS)
def end(request: HttpRequest, name: str) -> HttpResponse:
    """End an open window now; of a recurring one, no further occurrence starts."""
    window = _manageable(request, name)
    return _closed(request, window, lambda each, reason: announcements.end(each.name, reason), "ended")


@members_only
@require_POST
@managers_only(CHANGE_WINDOWS)
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a window as if it had never been, also one that was declared after the fact."""
    window = _found(request, name)
    if not _may_delete(request, window):
        raise PermissionDenied(f"Your roles do not permit this for {window}, or a feed announces it.")
    return _closed(request, window, withdraw_and_recompute, "deleted")


def _closed(
    request: HttpRequest,
    window: MaintenanceWindow,
    close: Callable[[MaintenanceWindow, Reason], object],
    done: str,
) -> HttpResponse:
    reason = Reason(request.user.get_username(), request.POST.get("reason", "").strip(), timezone.now())
    try:
        close(window, reason)
    except (MaintenanceError, InvalidRecomputation) as error:
        return _shown(request, window, error=str(error))
    messages.success(request, f"The maintenance window {window.name} is {done}.")
    return redirect("holds")


def _shown(request: HttpRequest, window: MaintenanceWindow, *, error: str = "") -> HttpResponse:
    now = timezone.now()
    listed = listed_window(window, request.user, now)
    manageable = MaintenanceWindow.objects.manageable_by(request.user).filter(pk=window.pk)
    may_change = may_manage_somewhere(request.user, CHANGE_WINDOWS) and manageable.exists()
    context = {
        "listed": listed,
        "window": window,
        "occurrences": compute(request, "occurrences", lambda: _occurrences(times_of(window))),
        "changes": compute(request, "changes", lambda: window_changes(window.name, MOST_CHANGES)),
        "may_change": may_change and listed.state != MaintenanceState.OVER,
        "may_end": may_change and _may_end(window, listed.state),
        "may_delete": _may_delete(request, window),
        "why_characters": MAX_REASON_CHARACTERS,
        "crumbs": _crumbs(),
        "error": error,
        "reason": request.POST.get("reason", ""),
    }
    return render(request, "pages/maintenance_window.html", context, status=409 if error else 200)


def _may_delete(request: HttpRequest, window: MaintenanceWindow) -> bool:
    try:
        check_may_announce(list(window.sites.all()), request.user)
    except NotPermitted:
        return False
    return window.source in {"", DECLARED}


def _may_end(window: MaintenanceWindow, state: MaintenanceState) -> bool:
    """Return whether there is something to end: the open occurrence, or those that recur."""
    return state == MaintenanceState.OPEN or (state == MaintenanceState.PLANNED and bool(window.schedule))


def _edited(
    request: HttpRequest, window: MaintenanceWindow | None, initial: Mapping[str, Any]
) -> HttpResponse:
    """Show, preview or save the form of *window*; None: a new one."""
    is_sent, is_saving = request.method == "POST", request.POST.get("verb") == SAVE
    form = MaintenanceForm(
        request.POST if is_sent else None,
        sites=list(Site.objects.manageable_by(request.user, CHANGE_WINDOWS).order_by("sort_name")),
        may_be_everywhere=may_manage_everywhere(request.user, CHANGE_WINDOWS),
        clock=zone(request),
        initial=initial,
        window=window,
    )
    occurrences: Sequence[Occurrence] = []
    if is_sent and form.is_valid():
        occurrences = _occurrences(form.announcement.times)
        saved = _saved(request, form, window) if is_saving else None
        if saved is not None:
            messages.success(request, f"The maintenance window {saved.name} is stored.")
            return redirect("maintenance-window", saved.name)
    context = {
        "form": form,
        "window": window,
        "may_be_everywhere": may_manage_everywhere(request.user, CHANGE_WINDOWS),
        "is_previewed": is_sent and not form.errors,
        "occurrences": occurrences,
        "zones": zone_names(),
        "crumbs": [*_crumbs(), *([_crumb(window)] if window else [])],
    }
    return render(request, "pages/maintenance_form.html", context, status=422 if form.errors else 200)


def _saved(
    request: HttpRequest, form: MaintenanceForm, window: MaintenanceWindow | None
) -> MaintenanceWindow | None:
    """Announce or change the window; None, with an error in *form*, if it is refused."""
    announcement = form.announcement
    reason = Reason(request.user.get_username(), form.cleaned_data["reason"], timezone.now())
    try:
        check_may_announce(announcement.sites, request.user)
        if window is None:
            return announce_or_declare(form.cleaned_data["name"], announcement, reason)
        return announcements.change(window.name, announcement, reason)
    except (MaintenanceError, InvalidRecomputation) as error:
        form.add_error(None, f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return None


def _occurrences(times: WindowTimes) -> list[Occurrence]:
    try:
        return next_occurrences(times, timezone.now(), OCCURRENCES)
    except InvalidSchedule:  # written by other ways than this form
        return []


def _found(request: HttpRequest, name: str) -> MaintenanceWindow:
    return get_object_or_404(MaintenanceWindow.objects.visible_to(request.user), name=name)


def _manageable(request: HttpRequest, name: str) -> MaintenanceWindow:
    window = _found(request, name)
    check_manageable(window, MaintenanceWindow.objects.manageable_by(request.user))
    return window


def _crumbs() -> list[tuple[str, str]]:
    return [("Maintenance and pauses", reverse("holds"))]


def _crumb(window: MaintenanceWindow) -> tuple[str, str]:
    return window.name, reverse("maintenance-window", args=[window.name])


urlpatterns = [
    path("maintenance.ics", calendar, name="maintenance-calendar"),
    path("maintenance/new/", new, name="maintenance-new"),
    path("maintenance/windows/<slug:name>/", page, name="maintenance-window"),
    path("maintenance/windows/<slug:name>/edit/", edit, name="maintenance-edit"),
    path("maintenance/windows/<slug:name>/end/", end, name="maintenance-end"),
    path("maintenance/windows/<slug:name>/delete/", delete, name="maintenance-delete"),
]
