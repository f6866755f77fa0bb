"""One run: every stage, metric and line of its report, and the outcome in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from monitor.charts.stage_shades import DrawnStage, drawn, of_probe
from monitor.depot.samples.read import of_run
from monitor.ledger.attribution import outcome_label
from monitor.models import RawReport, Run
from monitor.models.run import State
from monitor.pages.access import members_only, wants_part

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from reporters.report import Report


@dataclass(frozen=True)
class Bar:
    """One stage in the waterfall; *left* and *width* in percent of the run's time."""

    name: str
    category: str
    shade: int
    started_after_seconds: float
    seconds: float
    left: float
    width: float


@dataclass(frozen=True)
class PlannedStage:
    """A stage of a run under way; *progress* is "done", "now" or "later"."""

    drawn: DrawnStage
    progress: str


@members_only
def page(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """The page, or its content alone while the run is under way."""
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
        "planned": planned(of_probe(run.series.probe), run.stage) if run.is_pending else [],
    }
    if raw is not None:
        report, metrics = raw.parsed(), of_run(run)
        context |= {"report": report, "bars": waterfall(report), "metrics": metrics, "raw": _pretty(raw)}
        context["segment"] = metrics[0].segment if metrics else None
        context["received_at"] = raw.received_at
    return render(request, "parts/run.html" if wants_part(request) else "pages/run.html", context)


@members_only
def raw_report(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """The report, byte for byte as it came."""
    raw = RawReport.objects.of(_visible(request, pk))
    if raw is None:
        raise Http404("this run has no report")
    return HttpResponse(raw.body, content_type="application/json")


def headline(run: Run, now: datetime) -> str:
    """What became of *run*, as a sentence's beginning; the reason follows it."""
    if run.state == State.EXPECTED:
        return "Waits for its reporter" if run.due_at <= now else "Is not due yet"
    if run.state == State.CLAIMED:
        return "Was handed to its reporter"
    if run.state == State.RUNNING:
        return f"Running: {run.stage}" if run.stage else "Running"
    place = f" in {run.stage}" if run.stage else ""
    resource = f" at {run.failed_resource}" if run.failed_resource else ""
    return f"{outcome_label(run.state).capitalize()}{place}{resource}"


def planned(stages: list[DrawnStage], current: str) -> list[PlannedStage]:
    """How far a run has come that is in the stage *current*; empty before its first."""
    names = [stage.name for stage in stages]
    at = names.index(current) if current in names else -1
    progress = ["done" if i < at else "now" if i == at else "later" for i in range(len(names))]
    return [PlannedStage(*pair) for pair in zip(stages, progress, strict=True)]


def waterfall(report: Report) -> list[Bar]:
    """The stages of *report* over its time."""
    ends = [stage.started_after_seconds + stage.seconds for stage in report.stages]
    whole = max([report.seconds, *ends, 1e-9])
    shades = drawn((stage.name, stage.category) for stage in report.stages)
    return [
        Bar(
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
    visible = Run.objects.visible_to(request.user).select_related("series__reporter")
    found = visible.find(pk, timezone.now())
    if found is None:
        raise Http404(f"there is no run {pk}")
    return found


def _neighbour(run: Run, order: str, **where: Any) -> Run | None:
    """The run of the same series before or after this one; slots that have not come yet are none."""
    others = Run.objects.filter(series=run.series_id, **where).exclude(state=State.EXPECTED)
    return others.order_by(order).first()


def _pretty(raw: RawReport) -> str:
    return json.dumps(json.loads(raw.body), indent=2, ensure_ascii=False)
