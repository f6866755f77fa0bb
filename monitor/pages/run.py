"""One run: its outcome, stages, metrics, log and report."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from monitor.charts.stage_shades import DrawnStage, drawn, of_probe
from monitor.depot.samples.read import of_run
from monitor.failures.attribute import explained
from monitor.ledger.attribution import outcome_label
from monitor.models import ChainRecord, ConflictingReport, RawReport, Run
from monitor.models.run import State
from monitor.pages.http.access import members_only, wants_part
from monitor.pages.http.updates import live

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from reporters.report import Report


@dataclass(frozen=True)
class WaterfallBar:
    """One stage in the waterfall; *left* and *width* are percentages of the duration of the run."""

    name: str
    category: str
    shade: int
    started_after_seconds: float
    seconds: float
    left: float
    width: float


@dataclass(frozen=True)
class StageProgress:
    """A stage of a run that has not ended; *progress* is "done", "now" or "later"."""

    drawn: DrawnStage
    progress: str


@members_only
@live
def page(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show a run; htmx reloads its content until the run has ended."""
    run = _visible(request, pk)
    now = timezone.now()
    raw = RawReport.objects.of(run)
    context: dict[str, Any] = {
        "run": run,
        "now": now,
        "headline": headline(run, now),
        "previous": _neighbour(run, "-slot", slot__lt=run.slot),
        "next": _neighbour(run, "slot", slot__gt=run.slot),
        "transitions": run.transitions.all(),
        "conflicts": ConflictingReport.objects.of(run).defer("packed"),
        "at_fault": explained([run.pk]).get(run.pk),
        "stages": stage_progress(of_probe(run.series.probe), run.stage) if run.is_pending else [],
    }
    if raw is not None:
        report, metrics = raw.parsed(), of_run(run)
        context |= {"report": report, "bars": waterfall(report), "metrics": metrics, "raw": _indented(raw)}
        context["segment"] = metrics[0].segment if metrics else None
        context["received_at"] = raw.received_at
        context["record"] = ChainRecord.objects.of(run, raw.received_at)
    return render(request, "parts/run.html" if wants_part(request) else "pages/run.html", context)


@members_only
def raw_report(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Return the report, byte for byte as received."""
    raw = RawReport.objects.of(_visible(request, pk))
    if raw is None:
        raise Http404("this run has no report")
    return HttpResponse(raw.body, content_type="application/json")


@members_only
def conflicting_report(request: HttpRequest, pk: uuid.UUID, number: int) -> HttpResponse:
    """Return a report that was kept beside the first, byte for byte as received."""
    conflict = ConflictingReport.objects.of(_visible(request, pk)).filter(pk=number).first()
    if conflict is None:
        raise Http404("this run has no such report")
    return HttpResponse(conflict.body, content_type="application/json")


def headline(run: Run, now: datetime) -> str:
    """Return the state of *run* with stage and resource; the page shows the reason below it."""
    if run.state == State.EXPECTED:
        return "Waiting for the reporter" if run.due_at <= now else "Not due yet"
    if run.state == State.CLAIMED:
        return "Assigned to the reporter"
    if run.state == State.RUNNING:
        return f"Running: {run.stage}" if run.stage else "Running"
    stage = f" in {run.stage}" if run.stage else ""
    resource = f" at {run.failed_resource}" if run.failed_resource else ""
    return f"{outcome_label(run.state).capitalize()}{stage}{resource}"


def stage_progress(stages: list[DrawnStage], current: str) -> list[StageProgress]:
    """Return the progress of a run that is in the stage *current*, or before its first stage."""
    names = [stage.name for stage in stages]
    position = names.index(current) if current in names else -1
    return [
        StageProgress(stage, "done" if i < position else "now" if i == position else "later")
        for i, stage in enumerate(stages)
    ]


def waterfall(report: Report) -> list[WaterfallBar]:
    """Return the stages of *report* as bars over its duration."""
    ends = [stage.started_after_seconds + stage.seconds for stage in report.stages]
    whole = max([report.seconds, *ends, 1e-9])
    shades = drawn((stage.name, stage.category) for stage in report.stages)
    return [
        WaterfallBar(
            name=stage.name,
            category=stage.category,
            shade=shade.shade,
            started_after_seconds=stage.started_after_seconds,
            seconds=stage.seconds,
            left=100 * stage.started_after_seconds / whole,
            width=100 * stage.seconds / whole,
        )
        for stage, shade in zip(report.stages, shades, strict=True)
    ]


def _visible(request: HttpRequest, pk: uuid.UUID) -> Run:
    visible = Run.objects.visible_to(request.user).select_related("series__reporter", "signature")
    run = visible.find(pk, timezone.now())
    if run is None:
        raise Http404(f"there is no run {pk}")
    return run


def _neighbour(run: Run, order: str, **condition: Any) -> Run | None:
    """Return the first run of the same series, in *order*, that meets *condition*; omit expected runs."""
    others = Run.objects.filter(series=run.series_id, **condition).exclude(state=State.EXPECTED)
    return others.order_by(order).first()


def _indented(raw: RawReport) -> str:
    return json.dumps(json.loads(raw.body), indent=2, ensure_ascii=False)


urlpatterns = [
    path("runs/<uuid:pk>/", page, name="run"),
    path("runs/<uuid:pk>/report.json", raw_report, name="raw-report"),
    path("runs/<uuid:pk>/conflicts/<int:number>.json", conflicting_report, name="conflicting-report"),
]
