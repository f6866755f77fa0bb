"""One series: its forecast, its history, its latest runs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

import probes
from monitor.charts.chart_ranges import STRETCHES, begin, named
from monitor.charts.series_chart import chart
from monitor.depot.samples import formats
from monitor.depot.samples.export import export
from monitor.depot.samples.formats.base import UnknownFormat
from monitor.forecasts.series_outlook import outlook
from monitor.ledger import run_now as asking
from monitor.ledger.holds import HoldError, hold_progress
from monitor.ledger.maintenance import open_for_series
from monitor.models import Alert, Hold, Series
from monitor.models.hold import HoldKind, Scope
from monitor.models.run import State
from monitor.pages import holds
from monitor.pages.access import members_only, wants_part
from monitor.series.segment_history import segment_starts
from monitor.series.segments import segment_status
from monitor.units import unit_of
from probes.base import ProbeError

if TYPE_CHECKING:
    from datetime import datetime

LATEST_RUNS = 20
LATEST_TURNS = 20


@dataclass(frozen=True)
class Setting:
    """One parameter as the probe understands it."""

    name: str
    value: Any
    unit: str
    is_default: bool
    description: str


@members_only
def page(request: HttpRequest, name: str) -> HttpResponse:
    """The page, or its live part alone."""
    series = _visible(request, name)
    now = timezone.now()
    stretch = named(request.GET.get("range", ""))
    news = _news(series, now)
    if wants_part(request) and request.GET.get("seen") == news["digest"]:
        return HttpResponse(status=204)
    stands = news["stands"]
    history = chart(series, stretch, now, stands.current)
    turns = segment_starts(stands.segments, history.boundaries)[:LATEST_TURNS]
    context = {
        **news,
        "series": series,
        "now": now,
        "stretch": stretch,
        "stretches": STRETCHES,
        "forms": formats.names(),
        "history": history,
        "turns": turns,
        "coming": stands.is_changed and not (turns and turns[0].segment == stands.current),
    }
    if wants_part(request):
        return render(request, "parts/series.html", context)
    order = holds.forms(request, Scope(HoldKind.SERIES, series.name), now)
    return render(request, "pages/series.html", {**context, **order, **_set_up(series)})


@members_only
@require_POST
@permission_required("monitor.run_series", raise_exception=True)
def run_now(request: HttpRequest, name: str) -> HttpResponse:
    """Ask for a run; show it."""
    series = _visible(request, name)
    try:
        run = asking.run_now(series, who=request.user.get_username())
    except HoldError as error:
        messages.error(request, str(error))
        return redirect("series", series.name)
    messages.success(
        request, f"A run of {series.name} was asked for. It starts with the next tick, in seconds."
    )
    return redirect("run", pk=run.pk)


@members_only
def samples(request: HttpRequest, name: str, form: str) -> StreamingHttpResponse:
    """The values behind the charts, as a file."""
    series = _visible(request, name)
    stretch = named(request.GET.get("range", ""))
    start = begin(series, stretch, timezone.now())
    try:
        file = export(series, form, start=start, label=stretch.key)
    except UnknownFormat as error:
        raise Http404(str(error)) from error
    headers = file.headers(timezone.now())
    return StreamingHttpResponse(file.chunks, content_type=file.media_type, headers=headers)


def _visible(request: HttpRequest, name: str) -> Series:
    visible = Series.objects.visible_to(request.user).select_related("suite", "reporter")
    return get_object_or_404(visible, name=name)


def _news(series: Series, now: datetime) -> dict[str, Any]:
    """What changes from run to run, and a digest that changes with it."""
    latest = list(series.runs.ended().order_by("-slot")[:LATEST_RUNS])
    underway = list(series.runs.in_flight().order_by("slot"))
    next_run = series.runs.filter(state=State.EXPECTED).order_by("slot").first()
    stands = segment_status(series)
    said = outlook(stands)
    held = hold_progress(Hold.objects.at(now).over(series))
    alerts = list(Alert.objects.open().filter(series=series).select_related("rule"))
    works = open_for_series(series, now)
    seen = (
        [(run.pk, run.state, run.stage) for run in (*latest, *underway)],
        next_run and (next_run.pk, next_run.slot <= now),
        said.forecast and said.forecast.pk,
        said.record,
        said.success and (said.success.n, said.success.probability),
        [(one.hold.pk, one.words) for one in held],
        [one.pk for one in alerts],
        [one.words for one in works],
        (stands.current and stands.current.pk, [one.pk for one in stands.segments], stands.changes),
    )
    digest = hashlib.blake2s(repr(seen).encode(), digest_size=8).hexdigest()
    return {
        "latest": latest,
        "underway": underway,
        "next_run": next_run,
        "outlook": said,
        "stands": stands,
        "held": held,
        "alerts": alerts,
        "works": works,
        "digest": digest,
    }


def _set_up(series: Series) -> dict[str, Any]:
    """What is run, where: with the probe's own words where the probe is still there."""
    bindings: dict[str, list[Any]] = {}
    for binding in series.bindings.select_related("resource__site").order_by("role", "position"):
        bindings.setdefault(binding.role, []).append(binding.resource)
    try:
        probe = probes.load(series.probe)
    except ProbeError:
        roles = [(role, "", resources) for role, resources in bindings.items()]
        imported = "Imported: somebody else measured it, nothing here runs it."
        summary = imported if series.is_imported else "This probe is not here any more."
        return {"summary": summary, "roles": roles, "settings": _given(series)}
    roles = [(role, known.description, bindings.get(role, [])) for role, known in probe.roles.items()]
    settings = [
        Setting(
            name,
            series.parameters.get(name, p.default),
            unit_of(name),
            name not in series.parameters,
            p.description,
        )
        for name, p in probe.parameters.items()
    ]
    return {"summary": probe.summary, "roles": roles, "settings": settings}


def _given(series: Series) -> list[Setting]:
    return [
        Setting(name, value, unit_of(name), False, "") for name, value in sorted(series.parameters.items())
    ]
