"""Send ended runs as traces to a collector, by OTLP over HTTP.

A run is sent when its report has arrived, once: the row that asks for it is deleted after the collector has
accepted it. A worker that dies in between sends it again with the same ids. While the collector is away, up
to ``MOST_WAITING`` runs wait; beyond that the oldest are dropped and counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from django.conf import settings

from monitor.core.counters import counters
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.core.retry_after import MAY_ASK, retry_after_seconds
from monitor.models import RawReport, RunSubscriber
from monitor.models.run import REPORTED, State
from monitor.models.run_feed import TRACES
from monitor.runs.ledger import ended_runs
from reporters.report import ReportError

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.trace import ReadableSpan

    from monitor.runs.ledger.ended_runs import EndedRunEvent
    from reporters.report import Report

logger = logging.getLogger(__name__)
EXPORTED, DROPPED = "gridcast_traces_exported_total", "gridcast_traces_dropped_total"
MOST_WAITING = 100_000
AT_ONCE = 100  # runs in a request
SEND_SECONDS = 5.0  # for a request with its retries
PAUSE = timedelta(minutes=1)  # after a failure: a collector that is away must not occupy the control worker
BUSY_SECONDS = 20.0  # one task sends for this long, the next task the rest


@dataclass(frozen=True)
class CollectorRefusal:
    """The collector has not accepted spans; *retry_seconds* is for how long it asks to be left alone."""

    retry_seconds: float = 0.0


Send = Callable[[Sequence["ReadableSpan"]], CollectorRefusal | None]


def export_traces(now: datetime, send: Send | None = None, most_waiting: int = MOST_WAITING) -> int:
    """Send the runs that wait; return how many were sent. Without an endpoint nothing is kept or sent.

    *send* returns why the collector has not accepted the spans, None if it has; by default it posts them to
    the endpoint.
    """
    ended_runs.subscribe(TRACES, is_wanted=bool(settings.GRIDCAST_OTLP_ENDPOINT))
    if not settings.GRIDCAST_OTLP_ENDPOINT:
        return 0
    exported, until = 0, time.monotonic() + BUSY_SECONDS
    with session_lock(AdvisoryLock.TRACES) as is_ours:
        if not is_ours:
            return 0
        if dropped := ended_runs.drop_oldest(TRACES, most_waiting):
            logger.warning("dropped %d runs that waited to be exported as traces", dropped)
            counters.add(DROPPED, amount=dropped)
        if RunSubscriber.objects.filter(name=TRACES, paused_until__gt=now).exists():
            return 0
        while time.monotonic() < until:
            keys, events = ended_runs.next_events(TRACES, now, AT_ONCE)
            spans, number = _spans(events)
            if not keys:
                break
            if spans and (refusal := (send or _send_to_endpoint())(spans)) is not None:
                pause = max(PAUSE, timedelta(seconds=refusal.retry_seconds))
                RunSubscriber.objects.filter(name=TRACES).update(paused_until=now + pause)
                break
            ended_runs.forget(keys)
            counters.add(EXPORTED, amount=number)
            exported += number
    return exported


def _spans(events: Sequence[EndedRunEvent]) -> tuple[list[ReadableSpan], int]:
    """Return the spans of the runs with a report, and the number of these runs."""
    from monitor.analysis.traces.spans import spans_of  # noqa: PLC0415 - of an optional package

    wanted = [event for event in events if event.state in REPORTED and event.state != State.SKIPPED]
    reports = _reports(wanted)
    traces = [spans_of(event, reports[event.run.pk]) for event in wanted if event.run.pk in reports]
    return list(chain.from_iterable(traces)), len(traces)


def _reports(events: Sequence[EndedRunEvent]) -> dict[object, Report]:
    rows = RawReport.objects.filter(
        run_id__in=[event.run.pk for event in events], slot__in=[event.run.slot for event in events]
    )
    reports: dict[object, Report] = {}
    for row in rows:
        try:
            reports[row.run_id] = row.parsed()
        except (ReportError, ValueError) as error:
            logger.warning("the report of %s cannot be exported as a trace: %s", row.run_id, error)
    return reports


def _send_to_endpoint() -> Send:
    """Return a function that posts spans to the endpoint.

    The exporter retries within ``SEND_SECONDS``, unless the collector asks for a longer pause, and logs why
    it gave up; ``OTEL_EXPORTER_OTLP_HEADERS`` has its credentials.
    """
    from opentelemetry.exporter.otlp.proto.http import Compression  # noqa: PLC0415 - an optional package
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415

    from monitor.analysis.traces.session import bounded_session  # noqa: PLC0415 - needs a dependency of the exporter

    url = f"{settings.GRIDCAST_OTLP_ENDPOINT.rstrip('/')}/v1/traces"
    session, asked = bounded_session(), [0.0]

    def note_pause(answer: requests.Response, **_: object) -> None:
        if answer.status_code in MAY_ASK:
            asked.append(retry_after_seconds(answer.headers.get("Retry-After", ""), time.time()) or 0.0)

    session.hooks["response"].append(note_pause)
    exporter = OTLPSpanExporter(url, timeout=SEND_SECONDS, compression=Compression.Gzip, session=session)

    def send(spans: Sequence[ReadableSpan]) -> CollectorRefusal | None:
        try:
            is_accepted = exporter.export(spans) is SpanExportResult.SUCCESS
            return None if is_accepted else CollectorRefusal(asked[-1])
        finally:
            exporter.shutdown()  # type: ignore[no-untyped-call]

    return send
