"""Build the spans of a run. Their ids depend on the run only: a run that is sent twice is one trace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.urls import reverse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from monitor.models.run import DID_NOT_PASS, State
from reporters.remote import VERSION
from reporters.report import rfc3339

if TYPE_CHECKING:
    import uuid

    from monitor.runs.ledger.ended_runs import EndedRunEvent
    from reporters.report import Failure, Report, StageTiming

_SERVICE = Resource({"service.name": "gridcast", "service.version": VERSION})
_SCOPE = InstrumentationScope("gridcast.runs", VERSION)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def spans_of(event: EndedRunEvent, report: Report) -> list[ReadableSpan]:
    """Return the span of the run of *event*, and one for each stage of *report*."""
    run = event.run
    root = _context(run.pk, "run")
    status = Status(StatusCode.UNSET)
    if event.state == State.PASSED:
        status = Status(StatusCode.OK)
    elif event.state in DID_NOT_PASS:
        status = Status(StatusCode.ERROR, run.reason)
    begun = report.began_at
    stages = [
        _stage(run.pk, number, stage, root, begun, report) for number, stage in enumerate(report.stages)
    ]
    ended = max([begun + timedelta(seconds=report.seconds), *(_end(begun, stage) for stage in report.stages)])
    whole = _span(
        f"run {run.series.probe}",
        root,
        None,
        _run_attributes(event, report),
        (begun, ended),
        status,
        _events(report.failure, ended),
    )
    return [whole, *stages]


def _context(run: uuid.UUID, part: str) -> SpanContext:
    span = hashlib.sha256(f"{run} {part}".encode()).digest()[:8]
    return SpanContext(run.int, int.from_bytes(span, "big") or 1, is_remote=False, trace_flags=_SAMPLED)


def _stage(
    run: uuid.UUID, number: int, stage: StageTiming, root: SpanContext, begun: datetime, report: Report
) -> ReadableSpan:
    failure = report.failure if report.failure and report.failure.stage == stage.name else None
    attributes: dict[str, Any] = {"gridcast.stage": stage.name, "gridcast.stage.category": stage.category}
    if failure is not None and failure.resource:
        attributes["gridcast.resource"] = failure.resource
    status = Status(StatusCode.ERROR, failure.message) if failure else Status(StatusCode.OK)
    start, end = begun + timedelta(seconds=stage.started_after_seconds), _end(begun, stage)
    context = _context(run, f"{number} {stage.name}")
    return _span(stage.name, context, root, attributes, (start, end), status, _events(failure, end))


def _end(begun: datetime, stage: StageTiming) -> datetime:
    return begun + timedelta(seconds=stage.started_after_seconds + stage.seconds)


def _run_attributes(event: EndedRunEvent, report: Report) -> dict[str, Any]:
    run, series = event.run, event.run.series
    attributes: dict[str, Any] = {
        "gridcast.run": str(run.pk),
        "gridcast.series": series.name,
        "gridcast.suite": series.suite.name,
        "gridcast.probe": report.probe.name,
        "gridcast.probe.version": report.probe.version,
        "gridcast.reporter": report.reporter,
        "gridcast.resources": sorted({name for names in report.bindings.values() for name in names}),
        "gridcast.sites": list(event.sites),
        "gridcast.slot": rfc3339(run.slot),
        "gridcast.outcome": event.state,
    }
    optional = {
        "gridcast.reason": run.reason,
        "gridcast.failed_stage": run.stage,
        "gridcast.failed_resource": run.failed_resource,
        "gridcast.signature": run.signature.name if run.signature else "",
        "url.full": f"{settings.GRIDCAST_URL}{reverse('run', args=[run.pk])}"
        if settings.GRIDCAST_URL
        else "",
    }
    return attributes | {name: value for name, value in optional.items() if value}


def _events(failure: Failure | None, at: datetime) -> Sequence[Event]:
    if failure is None:
        return ()
    attributes = {"exception.type": "failure", "exception.message": failure.message}
    return (Event("exception", attributes, _nanoseconds(at)),)


def _span(
    name: str,
    context: SpanContext,
    parent: SpanContext | None,
    attributes: Mapping[str, Any],
    times: tuple[datetime, datetime],
    status: Status,
    events: Sequence[Event],
) -> ReadableSpan:
    start, end = map(_nanoseconds, times)
    return ReadableSpan(
        name=name,
        context=context,
        parent=parent,
        resource=_SERVICE,
        attributes=attributes,
        events=events,
        kind=SpanKind.INTERNAL,
        status=status,
        start_time=start,
        end_time=end,
        instrumentation_scope=_SCOPE,
    )


def _nanoseconds(time: datetime) -> int:
    """Return *time* as OpenTelemetry counts it, exactly to the microsecond."""
    since_1970 = time - datetime.fromtimestamp(0, tz=time.tzinfo)
    return max((since_1970 // timedelta(microseconds=1)) * 1_000, 0)
