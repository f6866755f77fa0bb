"""The report of a run: stages, metrics, failure and log."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import RawReport, Run
from monitor.models.run import State
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["runs"])


class ReportedStage(Schema):
    """A stage of the run."""

    name: str = Field(description="The name of the stage.", examples=["transfer_data"])
    category: str = Field(
        description="`setup`, `transfer`, `queue`, `compute` or `cleanup`.", examples=["transfer"]
    )
    seconds: float = Field(description="How long it took.", examples=[12.5])
    started_after_seconds: float = Field(description="From the start of the run to its own.", examples=[1.2])


class ReportedMetric(Schema):
    """A value that the run measured, without its stages and totals."""

    name: str = Field(description="The name of the metric.", examples=["transfer.bytes_per_second"])
    value: float = Field(description="The value.", examples=[8.1e6])
    unit: str = Field(description="The unit.", examples=["bytes_per_second"])


class ReportedFailure(Schema):
    """The first error of the run."""

    stage: str = Field(description="The stage that failed.", examples=["transfer_data"])
    resource: str | None = Field(
        description="The resource that failed; null if it is not known.", examples=["ncsa-login"]
    )
    message: str = Field(
        description="What was tried, on what, and what came back.", examples=["No space left on device"]
    )
    exit_status: int | None = Field(
        description="The exit status of the program that failed; null: none.", examples=[1]
    )
    stderr_tail: str = Field(
        description="The end of what it wrote as errors.", examples=["scp: No space left on device"]
    )


class ReportedLogLine(Schema):
    """A line of the log of the run."""

    level: str = Field(description="`debug`, `info`, `warning` or `error`.", examples=["info"])
    seconds: float = Field(description="Since the start of the run.", examples=[1.2])
    text: str = Field(description="The text of the line.", examples=["transfer_data begins"])


class ReportedProbe(Schema):
    """The probe that ran."""

    name: str = Field(description="The name of the probe.", examples=["gather"])
    version: str = Field(description="Its version at the reporter.", examples=["1.0"])
    sha256: str = Field(
        description="Of its source file; empty if it could not be loaded.", examples=["9f86d0"]
    )


class RunReportOut(Schema):
    """The report of a run. The page of the run offers it byte for byte as it arrived."""

    run: uuid.UUID = Field(
        description="The id of the run.", examples=["6f1c3c52-8d1e-5d0c-9a55-1d0f3c1b7a10"]
    )
    series: str = Field(description="The name of the series.", examples=["gather-main"])
    slot: datetime = Field(description="The time by the schedule.", examples=["2026-03-01T12:00:00Z"])
    reporter: str = Field(description="The reporter that ran it.", examples=["home"])
    received_at: datetime = Field(description="When the report arrived.", examples=["2026-03-01T12:01:33Z"])
    started_at: datetime = Field(
        description="When the run started, by the server's clock.", examples=["2026-03-01T12:00:05Z"]
    )
    clock_correction_seconds: float = Field(
        description="What was added to the times in the report, because the clock of the reporter's host was"
        " behind, or was taken from them, because it was ahead; 0 if it was right.",
        examples=[-3600.0],
    )
    seconds: float = Field(description="How long the run took.", examples=[87.2])
    outcome: State = Field(description="How the run ended.", examples=["passed"])
    reason: str = Field(description="Why it did not pass; empty if it passed.", examples=[""])
    probe: ReportedProbe
    parameters: dict[str, Any] = Field(
        description="The value of every parameter.", examples=[{"file_bytes": 100_000_000}]
    )
    resources: dict[str, list[str]] = Field(
        description="The names of the resources by role, in order.", examples=[{"sources": ["ncsa-login"]}]
    )
    stages: list[ReportedStage] = Field(description="The stages that ran, in order.")
    metrics: list[ReportedMetric] = Field(description="What the run measured beside its stages.")
    failure: ReportedFailure | None = Field(description="The first error; null if there was none.")
    log: list[ReportedLogLine] = Field(description="The log, in order.")


@router.get(
    "/runs/{run}/report",
    response=RunReportOut,
    operation_id="show_run_report",
    openapi_extra=declare(errors={404: ["unknown_run", "no_report"]}),
    summary="Show the report of a run, with stages and log",
)
def show_run_report(request: HttpRequest, run: uuid.UUID, query: Query[Sparse]) -> HttpResponse:
    """404 `no_report`: the run has not ended, no report came, or retention has deleted it."""
    found = Run.objects.visible_to(request.user).select_related("series").find(run, timezone.now())
    if found is None:
        raise Refused(404, "unknown_run", f"there is no run {run} that you may see")
    raw = RawReport.objects.of(found)
    if raw is None:
        raise Refused(404, "no_report", f"the run {run} has no report", state=found.state)
    return show_item(query, _shown(found, raw), RunReportOut)


def _shown(run: Run, raw: RawReport) -> RunReportOut:
    report = raw.parsed()
    same = ("reporter", "seconds", "outcome", "reason", "probe", "stages", "metrics", "failure")
    return RunReportOut.model_validate(
        {
            "run": run.pk,
            "series": run.series.name,
            "slot": run.slot,
            "received_at": raw.received_at,
            "started_at": report.began_at,
            "clock_correction_seconds": report.clock.correction_seconds,
            "parameters": dict(report.parameters),
            "resources": {role: list(names) for role, names in report.bindings.items()},
            "log": list(report.log),
            **{name: getattr(report, name) for name in same},
        },
        from_attributes=True,
    )
