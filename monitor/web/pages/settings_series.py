"""Series: listed, defined by a form of their probe, changed after a review, retired and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

import probes
from monitor.depot.series.next_slots import NextSlot, next_slots
from monitor.models import Series, SeriesDeletion
from monitor.models.natural_order import sort_name
from monitor.models.series import REPORTED_PROBE
from monitor.operations.gridfile import entries as grid_entries
from monitor.operations.gridfile.definition import SeriesDefinition
from monitor.operations.gridfile.format import SeriesEntry
from monitor.web.pages.http import entry_form
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.entry_form import EntryForm, SubmittedForm
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.read_form import accepts_form
from monitor.web.pages.http.series_form import completed, effects, loaded, series_fields
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from monitor.operations.gridfile.definition import Definition

SERIES_A_PAGE = 100
ADD, CHANGE, DELETE = "monitor.add_series", "monitor.change_series", "monitor.delete_series"
_METHODS = ["GET", "HEAD", "POST"]


class ProbeChoice(NamedTuple):
    """A probe that a new series may have; *kind* is empty if programs outside of gridcast report it."""

    name: str
    kind: str
    summary: str


@members_only
def page(request: HttpRequest) -> HttpResponse:
    wanted = {name: request.GET.get(name, "").replace("\x00", "") for name in ("q", "suite")}
    rows = Series.objects.visible_to(request.user)
    rows = rows.filter(name__has_text=wanted["q"]) if wanted["q"] else rows
    rows = rows.filter(suite__name=wanted["suite"]) if wanted["suite"] else rows
    after = request.GET.get("after", "").replace("\x00", "")  # by name: a late page costs no more
    in_order = rows.filter(sort_name__gt=sort_name(after)).order_by("sort_name").values_list("pk", flat=True)

    def listed() -> dict[str, Any]:
        keys = list(in_order[: SERIES_A_PAGE + 1])  # read in an index, without the rows
        series = Series.objects.filter(pk__in=keys[:SERIES_A_PAGE]).order_by("sort_name")
        shown = list(series.select_related("suite", "reporter", "leader", "deletion"))
        return {"series": shown, "has_more": len(keys) > SERIES_A_PAGE}

    context = {
        "crumbs": crumbs_of("settings"),
        **(compute(request, "series", listed) or {}),
        "after": after,
        "wanted": wanted,
        "may_add": request.user.has_perm(ADD),
        "may_change": request.user.has_perm(CHANGE),
    }
    return render(request, "pages/settings_series.html", context)


@accepts_form(entry_form.most_bytes(SeriesEntry))
@members_only
@permission_required(ADD, raise_exception=True)
@require_http_methods(_METHODS)
def new(request: HttpRequest) -> HttpResponse:
    """Let the user choose a probe, then show its form, or define the series."""
    probe = request.GET.get("probe", "")
    if probe not in [*probes.names(), REPORTED_PROBE]:
        context = {"crumbs": crumbs_of("settings", "settings-series"), "choices": _choices()}
        return render(request, "pages/settings_series_probe.html", context)
    return _edited(request, "", probe)


@accepts_form(entry_form.most_bytes(SeriesEntry))
@members_only
@permission_required(CHANGE, raise_exception=True)
@require_http_methods(_METHODS)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Show the form of a series, with another probe if the query string names one, or change the series."""
    series = _visible(request, name)
    probe = request.GET.get("probe", "")
    is_runnable = probe in [*probes.names(), REPORTED_PROBE]
    return _edited(request, series.name, probe if is_runnable else series.probe)


@accepts_form(entry_form.most_bytes(SeriesEntry))
@members_only
@require_http_methods(_METHODS)
def retire(request: HttpRequest, name: str) -> HttpResponse:
    """Ask whether to disable a series, which keeps what was measured, or to delete it with its history."""
    if not (request.user.has_perm(CHANGE) or request.user.has_perm(DELETE)):
        raise PermissionDenied("Your roles do not permit this.")
    series = _visible(request, name)
    error = ""
    if request.method == "POST":
        error = _retire(request, series)
        if not error:
            return redirect("settings-series")
    context = {
        "crumbs": [
            *crumbs_of("settings", "settings-series"),
            (name, reverse("settings-series-edit", args=[name])),
        ],
        "series": series,
        **(compute(request, "losses", lambda: _losses(series)) or {}),
        "seen": entry_form.seen_token("series", name),
        "may_change": request.user.has_perm(CHANGE),
        "may_delete": request.user.has_perm(DELETE),
        "error": error,
    }
    return render(request, "pages/settings_series_retire.html", context, status=409 if error else 200)


def _losses(series: Series) -> dict[str, Any]:
    """Return the context of what retiring or deleting *series* concerns: its runs and its followers."""
    followers = series.followers.order_by("sort_name").values_list("name", flat=True)
    return {"runs": series.runs.ended().count(), "followers": list(followers)}


def _retire(request: HttpRequest, series: Series) -> str:
    """Disable or delete *series*; return the error, empty if it is done."""
    verb = request.POST.get("verb", "")
    needed = {"retire": CHANGE, "delete": DELETE}.get(verb)
    if needed is None:
        return "Not changed: expected to retire or to delete."
    if not request.user.has_perm(needed):
        raise PermissionDenied("Your roles do not permit this.")
    if verb == "retire":
        error = entry_form.disable(request, "series", series.name)
        text = f"Series {series.name} is retired: it starts no more runs, and keeps its history."
    elif request.POST.get("confirmed", "").strip() != series.name:
        return f"Not deleted: type {series.name} to confirm."
    else:
        error = entry_form.remove(request, "series", series.name)
        deletion = SeriesDeletion.objects.under_way().filter(name=series.name).first()
        text = f"Series {series.name} is deleted with its history."
        if deletion is not None:
            text = f"Series {series.name} is being deleted with its {deletion.runs:,} runs."
    if not error:
        messages.success(request, text)
    return error


def _visible(request: HttpRequest, name: str) -> Series:
    return get_object_or_404(
        Series.objects.visible_to(request.user).select_related("suite", "deletion"), name=name
    )


def _edited(request: HttpRequest, name: str, probe: str) -> HttpResponse:
    """Show, review or save the form of the series *name* (empty: a new one) as one of *probe*."""
    definition = grid_entries.find("series", name) if name else None
    if name and definition is None:
        raise Http404
    entry = grid_entries.as_entry("series", definition) or {}
    bound = {
        key.removeprefix("bindings."): len([each for each in request.POST.getlist(key) if each])
        for key in request.POST
        if key.startswith("bindings.")
    }
    fields = series_fields(probe, request.user, entry, bound, is_new=not name)
    if request.method != "POST":
        return _shown(
            request, name, probe, entry_form.opened("series", fields, entry, entry or None), definition
        )
    result = entry_form.submitted(
        request,
        "series",
        name,
        fields,
        complete=lambda submitted: completed(submitted, probe, entry, fields),
        must_review=effects,
    )
    if result.is_saved and result.change is not None:
        messages.success(request, f"Series {result.change.name} {'changed' if name else 'defined'}.")
        return redirect("settings-series")
    planned = result.change.after if result.change else None
    return _shown(request, name, probe, result.form, planned, result)


def _shown(
    request: HttpRequest,
    name: str,
    probe: str,
    form: EntryForm,
    planned: Definition | None,
    submission: SubmittedForm | None = None,
) -> HttpResponse:
    plug_in = loaded(probe)
    context: dict[str, Any] = {
        "crumbs": crumbs_of("settings", "settings-series"),
        "form": form,
        "name": name,
        "probe": probe,
        "summary": plug_in.summary if plug_in else "",
        "choices": _choices(),
        "submission": submission,
        "slots": _slots(planned),
        "cancel": "settings-series",
        "may_retire": request.user.has_perm(CHANGE) or request.user.has_perm(DELETE),
    }
    status = 409 if form.has_faults else 200
    return render(request, "pages/settings_series_form.html", context, status=status)


def _slots(series: Definition | None) -> list[NextSlot]:
    if not isinstance(series, SeriesDefinition) or not series.schedule:
        return []
    times = {"starts_at": series.starts_at, "ends_at": series.ends_at}
    try:
        return next_slots(series.schedule, series.name, series.timezone, timezone.now(), **times)
    except InvalidSchedule:  # written by other ways than a form
        return []


def _choices() -> list[ProbeChoice]:
    installed = [(name, loaded(name)) for name in probes.names()]
    choices = [ProbeChoice(name, probe.kind, probe.summary) for name, probe in installed if probe]
    return [
        *choices,
        ProbeChoice(REPORTED_PROBE, "", "Programs outside of gridcast run it and report its runs."),
    ]


urlpatterns = [
    path("settings/series/", page, name="settings-series"),
    path("settings/series/new/", new, name="settings-series-new"),
    path("settings/series/edit/<slug:name>/", edit, name="settings-series-edit"),
    path("settings/series/retire/<slug:name>/", retire, name="settings-series-retire"),
]
