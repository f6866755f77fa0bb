"""Suites: listed, defined, changed after a review of what their retention deletes, and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import Group
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import require_http_methods

from monitor.models import Suite
from monitor.operations.gridfile import entries as grid_entries
from monitor.operations.gridfile.definition import SuiteDefinition
from monitor.operations.gridfile.format import SuiteEntry
from monitor.web.pages.http import entry_form
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.entry_form import NAME
from monitor.web.pages.http.form_fields import FormField, model_fields
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.read_form import accepts_form

if TYPE_CHECKING:
    from monitor.operations.gridfile.planning import Change

ADD, CHANGE, DELETE = "monitor.add_suite", "monitor.change_suite", "monitor.delete_suite"
_METHODS = ["GET", "HEAD", "POST"]
MOST_NAMES = 20  # of series that prevent the deletion
_KEPT = {
    "keep_reports_days": "raw reports",
    "keep_samples_days": "samples",
    "keep_hourly_days": "hourly rollups",
    "keep_daily_days": "daily rollups",
}


@members_only
def page(request: HttpRequest) -> HttpResponse:
    suites = Suite.objects.visible_to(request.user).prefetch_related("viewers")
    context = {
        "crumbs": crumbs_of("settings"),
        "suites": compute(
            request, "suites", lambda: list(suites.annotate(members=Count("series", distinct=True)))
        ),
        "may_add": request.user.has_perm(ADD),
        "may_change": request.user.has_perm(CHANGE),
        "may_delete": request.user.has_perm(DELETE),
    }
    return render(request, "pages/settings_suites.html", context)


@accepts_form(entry_form.most_bytes(SuiteEntry))
@members_only
@permission_required(ADD, raise_exception=True)
@require_http_methods(_METHODS)
def new(request: HttpRequest) -> HttpResponse:
    return _edited(request, "")


@accepts_form(entry_form.most_bytes(SuiteEntry))
@members_only
@permission_required(CHANGE, raise_exception=True)
@require_http_methods(_METHODS)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    return _edited(request, get_object_or_404(Suite.objects.visible_to(request.user), name=name).name)


@accepts_form(entry_form.most_bytes(SuiteEntry))
@members_only
@permission_required(DELETE, raise_exception=True)
@require_http_methods(_METHODS)
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Ask whether to delete a suite, and delete it; a suite with series is not deleted."""
    suite = get_object_or_404(Suite.objects.visible_to(request.user), name=name)
    error = entry_form.remove(request, "suites", name) if request.method == "POST" else ""
    if request.method == "POST" and not error:
        messages.success(request, f"Suite {name} is deleted.")
        return redirect("settings-suites")
    context = {
        "noun": "suite",
        "name": name,
        "crumbs": crumbs_of("settings", "settings-suites"),
        "list_url": "settings-suites",
        "losses": ["The suite with its viewers and retention. It has no series."],
        "hindrance": _hindrance(suite),
        "seen": entry_form.seen_token("suites", name),
        "error": error,
    }
    return render(request, "pages/settings_delete.html", context, status=409 if error else 200)


def _hindrance(suite: Suite) -> str:
    """Return why *suite* cannot be deleted; empty if it can."""
    names = list(suite.series.order_by("sort_name").values_list("name", flat=True))
    others = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"Its series need another suite first: {', '.join(names[:MOST_NAMES])}{others}." if names else ""


def _edited(request: HttpRequest, name: str) -> HttpResponse:
    """Show, review or save the form of the suite *name*; empty: a new one."""
    entry = grid_entries.as_entry("suites", grid_entries.find("suites", name)) if name else None
    if name and entry is None:
        raise Http404
    fields = _fields(is_new=not name)
    context = {
        "crumbs": crumbs_of("settings", "settings-suites"),
        "name": name,
        "cancel": "settings-suites",
        "may_delete": request.user.has_perm(DELETE),
    }
    if request.method != "POST":
        form = entry_form.opened("suites", fields, entry, entry)
        return render(request, "pages/settings_suites_form.html", {**context, "form": form})
    result = entry_form.submitted(request, "suites", name, fields, must_review=effects)
    if result.is_saved and result.change is not None:
        messages.success(request, f"Suite {result.change.name} {'changed' if name else 'defined'}.")
        return redirect("settings-suites")
    context |= {"form": result.form, "submission": result}
    status = 409 if result.form.has_faults else 200
    return render(request, "pages/settings_suites_form.html", context, status=status)


def _fields(*, is_new: bool) -> list[FormField]:
    names = {"viewers": list(Group.objects.order_by("name").values_list("name", flat=True))}
    groups = dict.fromkeys(_KEPT, "Retention")
    return [*([NAME] if is_new else []), *model_fields(SuiteEntry, names, groups=groups)]


def effects(change: Change) -> list[str]:
    """Return what *change* of a suite deletes, and who may see it afterwards."""
    before, after = change.before, change.after
    if not isinstance(before, SuiteDefinition) or not isinstance(after, SuiteDefinition):
        return []
    texts = []
    for key, what in _KEPT.items():
        old, new = getattr(before, key), getattr(after, key)
        if new is not None and (old is None or new < old):
            texts.append(f"The {what} of its series that are older than {new} days are deleted for ever.")
    if set(before.viewers) != set(after.viewers):
        groups = ", ".join(after.viewers)
        texts.append(
            f"Only {groups}, operators and administrators see it." if groups else "All users see it."
        )
    if before.is_public != after.is_public:
        shown = "shows" if after.is_public else "no longer shows"
        texts.append(f"The public status page {shown} its name and state, without a login.")
    return texts


urlpatterns = [
    path("settings/suites/", page, name="settings-suites"),
    path("settings/suites/new/", new, name="settings-suite-new"),
    path("settings/suites/edit/<slug:name>/", edit, name="settings-suite-edit"),
    path("settings/suites/delete/<slug:name>/", delete, name="settings-suite-delete"),
]
