"""One run: what failed and why, its stages and transfers as expected, what changed, log and report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone

from monitor.analysis.attribution.attribute import explained
from monitor.analysis.incidents.open_and_resolve import earlier, earlier_of_signature, incident_of
from monitor.analysis.outcomes.run_differences import run_differences
from monitor.analysis.outcomes.same_failure import same_failure
from monitor.analysis.performance.expected_durations import expected_durations
from monitor.depot.samples.read import of_run
from monitor.models import (
    ChainRecord,
    ConflictingReport,
    Incident,
    RawReport,
    Resource,
    Run,
    Segment,
    Series,
)
from monitor.models.run import State
from monitor.models.segment import SegmentIdentity
from monitor.runs.ledger.attribution import outcome_label
from monitor.runs.ledger.skip_causes import skip_causes
from monitor.web.charts.run_transfers import run_transfers
from monitor.web.charts.run_waterfall import stage_metric, waterfall
from monitor.web.charts.stage_shades import DrawnStage, of_probe
from monitor.web.charts.transfer_svg import transfer_svg
from monitor.web.pages.http.access import members_only, wants_part
from monitor.web.pages.http.parts import compute, has_failed
from monitor.web.pages.http.updates import live
from reporters.report import LEVELS

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from reporters.report import LogLine, Report


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
    sites = _sites(run)
    site = sites.get(run.failed_resource, "")
    context: dict[str, Any] = {
        "run": run,
        "now": now,
        "headline": headline(run, now),
        "site": site,
        "resource_sites": sites,
        "crumbs": _crumbs(run, site or next(iter(sites.values()), "")),
        "neighbours": compute(request, "neighbours", lambda: _neighbours(run)),
        "transitions": compute(request, "ledger", lambda: list(run.transitions.all())),
        "conflicts": compute(
            request, "conflicts", lambda: list(ConflictingReport.objects.of(run).defer("packed"))
        ),
        "skip_cause": compute(request, "skipped", lambda: skip_causes([run], request.user).get(run.pk)),
        "may_run_again": not run.is_pending and _may_run(request, run.series),
        **((compute(request, "knowledge", lambda: _cause(request, run)) if run.signature else None) or {}),
        **(compute(request, "report", lambda: _report(request, run, sites)) or {}),
    }
    if run.is_pending and "report" not in context and not has_failed(request, "report"):
        context["stages"] = compute(
            request, "progress", lambda: stage_progress(of_probe(run.series.probe), run.stage)
        )
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
    signature = run.signature if run.signature and not run.signature.is_unknown else None
    cause = f": {signature.title}" if signature else ""
    return f"{outcome_label(run.state).capitalize()}{stage}{resource}{cause}"


def stage_progress(stages: list[DrawnStage], current: str) -> list[StageProgress]:
    """Return the progress of a run that is in the stage *current*, or before its first stage."""
    names = [stage.name for stage in stages]
    position = names.index(current) if current in names else -1
    return [
        StageProgress(stage, "done" if i < position else "now" if i == position else "later")
        for i, stage in enumerate(stages)
    ]


def matching_lines(log: Iterable[LogLine], text: str, level: str) -> list[LogLine]:
    """Return the lines of *log* that contain *text*, whatever the case, from *level* up (empty: all)."""
    least = LEVELS.index(level) if level in LEVELS else 0
    wanted = text.casefold()
    return [line for line in log if wanted in line.text.casefold() and LEVELS.index(line.level) >= least]


def _cause(request: HttpRequest, run: Run) -> dict[str, Any]:
    """Return why a failed run failed: the part at fault, other runs, its incident and earlier ones."""
    if run.signature is None:
        return {}
    incidents = Incident.objects.visible_to(request.user).select_related("signature")
    incident = incident_of(run, incidents)
    return {
        "at_fault": explained([run.pk]).get(run.pk),
        "same": same_failure(run, Run.objects.visible_to(request.user)),
        "incident": incident,
        "earlier": earlier(incident, incidents)
        if incident
        else earlier_of_signature(run.signature.pk, run.slot, incidents),
    }


def _report(request: HttpRequest, run: Run, sites: Mapping[str, str]) -> dict[str, Any]:
    """Return what the report of *run* tells; nothing if there is no report."""
    raw = RawReport.objects.of(run)
    if raw is None:
        return {}
    report = raw.parsed()
    metrics = compute(request, "metrics", lambda: of_run(run))
    segment = metrics[0].segment if metrics else None
    text, level = request.GET.get("log", ""), request.GET.get("level", "")
    return {
        "report": report,
        "metrics": metrics,
        "segment": segment,
        "log_lines": compute(request, "log", lambda: matching_lines(report.log, text, level)),
        "log_text": text,
        "log_level": level,
        "levels": LEVELS,
        "raw": _indented(raw),
        "received_at": raw.received_at,
        "record": ChainRecord.objects.of(run, raw.received_at),
        **(compute(request, "stages", lambda: _durations(run, report, segment, sites)) or {}),
        **(compute(request, "differs", lambda: _last_passed(run, report)) or {}),
    }


def _durations(run: Run, report: Report, segment: Segment | None, sites: Mapping[str, str]) -> dict[str, Any]:
    """Return the stages and transfers of *report* as expected in *segment* (None: not known)."""
    segment = segment or _segment(run, report)
    transfers = run_transfers(report)
    names = [
        *(stage_metric(stage.name) for stage in report.stages),
        *(transfers.metrics if transfers else ()),
    ]
    expected = expected_durations(segment, names, run.slot) if segment and names else {}
    drawn = {"bars": waterfall(report, expected), "has_expected": bool(expected)}
    if transfers is None:
        return drawn
    return {
        **drawn,
        "transfers": transfers,
        "transfer_bars": transfers.bars(expected),
        "paths": transfer_svg(transfers, sites),
    }


def _last_passed(run: Run, report: Report) -> dict[str, Any]:
    """Return the last passed run before *run*, and what differs in *report* from its report."""
    passed = _neighbour(run, "-slot", slot__lt=run.slot, state=State.PASSED)
    raw = RawReport.objects.of(passed) if passed else None
    return {
        "passed": passed,
        "differences": run_differences(raw.parsed(), report) if raw else None,
    }


def _segment(run: Run, report: Report) -> Segment | None:
    """Return the segment to which a run of this *report* belongs, although it measured nothing."""
    bindings = {role: list(names) for role, names in report.bindings.items()}
    identity = SegmentIdentity(report.probe.name, report.probe.version, report.parameters, bindings)
    return Segment.objects.filter(series=run.series_id, fingerprint=identity.fingerprint).first()


def _sites(run: Run) -> dict[str, str]:
    """Return the site of each resource of the series, and of the resource that failed, in order of roles."""
    bound = run.series.bindings.order_by("role", "position")
    sites = dict(bound.values_list("resource__name", "resource__site__name"))
    if run.failed_resource and run.failed_resource not in sites:
        sites |= Resource.objects.sites_by_name([run.failed_resource])
    return sites


def _crumbs(run: Run, site: str) -> list[tuple[str, str]]:
    series = run.series.name
    at_site = [(site, reverse("site", args=[site]))] if site else []
    return [*at_site, (series, reverse("series", args=[series]))]


def _may_run(request: HttpRequest, series: Series) -> bool:
    is_ours = not (series.is_imported or series.is_reported)
    return is_ours and Series.objects.manageable_by(request.user).filter(pk=series.pk).exists()


def _visible(request: HttpRequest, pk: uuid.UUID) -> Run:
    visible = Run.objects.visible_to(request.user).select_related("series__reporter", "signature")
    run = visible.find(pk, timezone.now())
    if run is None:
        raise Http404(f"there is no run {pk}")
    return run


def _neighbours(run: Run) -> tuple[Run | None, Run | None]:
    """Return the runs of the same series before and after *run*."""
    return _neighbour(run, "-slot", slot__lt=run.slot), _neighbour(run, "slot", slot__gt=run.slot)


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
