"""Runs arrive at a real receiver of OTLP as traces: once, complete, with ids that depend on the run."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.utils import timezone
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.traces.export import PAUSE, export_traces
from monitor.models import EndedRun, RawReport, Run, RunSubscriber, Series
from monitor.models.run import State
from tests.monitor.web.pages import builders

MINUTE = timedelta(minutes=1)
REFUSED = "cannot connect to site2.example.org:22: Connection refused"


class Collector(ThreadingHTTPServer):
    """A receiver of traces; *status* is its answer, *spans* are those that it has accepted."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _CollectorHandler)
        self.status = 200
        self.spans: list[Span] = []
        self.resources: list[Mapping[str, Any]] = []
        self.requests, self.retry_after = 0, ""
        self.answer = bytes(ExportTraceServiceResponse().SerializeToString())
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def named(self, name: str) -> Span:
        (span,) = [span for span in self.spans if span.name == name]
        return span


class _CollectorHandler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        if self.server.status == 200 and self.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.server.resources.append(attributes(resource.resource))
                for scope in resource.scope_spans:
                    self.server.spans.extend(scope.spans)
        self.server.requests += 1
        self.send_response(self.server.status)
        if self.server.retry_after:
            self.send_header("Retry-After", self.server.retry_after)
        self.end_headers()
        with contextlib.suppress(OSError):  # the exporter reads no more than its bounds
            self.wfile.write(self.server.answer)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def ring(db: None) -> Series:
    (ring,) = builders.circles(["ring"], builders.sites(2))
    return ring


@pytest.fixture
def collector(ring: Series, settings: Any) -> Iterator[Collector]:
    with served() as server:
        settings.GRIDCAST_OTLP_ENDPOINT = server.url
        export_traces(timezone.now())  # subscribes
        yield server


def attributes(part: Any) -> dict[str, Any]:
    def value(any_value: Any) -> Any:
        kind = any_value.WhichOneof("value")
        if kind == "array_value":
            return [value(item) for item in any_value.array_value.values]
        return getattr(any_value, kind)

    return {pair.key: value(pair.value) for pair in part.attributes}


def test_a_run_is_a_trace_and_its_stages_are_spans(ring: Series, collector: Collector) -> None:
    run = builders.passed(ring, timezone.now() - MINUTE)
    assert export_traces(timezone.now()) == 1
    root = collector.named("run circle")
    assert root.trace_id == run.pk.bytes
    assert root.parent_span_id == b""
    assert root.status.code == Status.STATUS_CODE_OK
    assert attributes(root) == {
        "gridcast.run": str(run.pk),
        "gridcast.series": "ring",
        "gridcast.suite": "main",
        "gridcast.probe": "circle",
        "gridcast.probe.version": attributes(root)["gridcast.probe.version"],
        "gridcast.reporter": "home",
        "gridcast.resources": ["site1-login", "site2-login"],
        "gridcast.sites": ["site1", "site2"],
        "gridcast.slot": attributes(root)["gridcast.slot"],
        "gridcast.outcome": "passed",
    }
    stages = [span for span in collector.spans if span.parent_span_id == root.span_id]
    assert [span.name for span in stages] == list(builders.CIRCLE)
    seconds = {span.name: (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9 for span in stages}
    assert seconds["transfer_ring"] == pytest.approx(4.2)
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano for span in stages)
    assert all(span.end_time_unix_nano <= root.end_time_unix_nano for span in stages)
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    assert collector.resources[0]["service.name"] == "gridcast"


def test_a_failed_run_names_stage_resource_and_signature(ring: Series, collector: Collector) -> None:
    report = builders.report(ring, timezone.now() - MINUTE)
    builders.delivered(builders.failed(report, "transfer_ring", "site2-login", REFUSED))
    assert export_traces(timezone.now()) == 0, "it waits for its signature"
    classify_runs(timezone.now())
    assert export_traces(timezone.now()) == 1
    root, stage = collector.named("run circle"), collector.named("transfer_ring")
    assert root.status.code == stage.status.code == Status.STATUS_CODE_ERROR
    assert attributes(root)["gridcast.signature"]
    assert attributes(root)["gridcast.failed_stage"] == "transfer_ring"
    assert attributes(stage)["gridcast.resource"] == "site2-login"
    assert attributes(stage.events[0])["exception.message"] == REFUSED
    assert collector.named("init").status.code == Status.STATUS_CODE_OK


def test_each_run_is_sent_once(ring: Series, collector: Collector) -> None:
    for number in range(3):
        builders.passed(ring, timezone.now() - (number + 1) * MINUTE)
    assert export_traces(timezone.now()) == 3
    assert export_traces(timezone.now()) == 0
    assert len([span for span in collector.spans if span.name == "run circle"]) == 3
    assert not EndedRun.objects.exists()


def test_a_run_that_is_sent_twice_has_the_same_ids(ring: Series, collector: Collector) -> None:
    """As after a worker that died between the answer of the collector and its own commit."""
    run = builders.passed(ring, timezone.now() - MINUTE)
    row = EndedRun.objects.get()
    export_traces(timezone.now())
    EndedRun.objects.bulk_create([row])
    export_traces(timezone.now())
    first, second = collector.spans[: len(collector.spans) // 2], collector.spans[len(collector.spans) // 2 :]
    assert [span.SerializeToString() for span in first] == [span.SerializeToString() for span in second]
    assert first[0].trace_id == run.pk.bytes


def test_runs_wait_while_the_collector_is_away(ring: Series, collector: Collector) -> None:
    builders.passed(ring, timezone.now() - MINUTE)
    collector.status = 400  # the exporter retries 503 for seconds
    assert export_traces(timezone.now()) == 0
    assert EndedRun.objects.count() == 1
    collector.status = 200
    assert export_traces(timezone.now()) == 0, "the pause is not over"
    assert export_traces(timezone.now() + PAUSE) == 1


def test_a_collector_that_asks_for_an_hour_gets_nothing_for_an_hour(
    ring: Series, collector: Collector
) -> None:
    now, hour = timezone.now(), timedelta(hours=1)
    builders.passed(ring, now - MINUTE)
    collector.status, collector.retry_after = 503, "3600"
    assert export_traces(now) == 0
    collector.status = 200
    assert export_traces(now + hour - MINUTE) == 0
    assert collector.requests == 1
    assert export_traces(now + hour + MINUTE) == 1


def test_an_answer_beyond_the_bounds_keeps_the_runs(
    ring: Series, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    builders.passed(ring, timezone.now() - MINUTE)
    collector.answer = b"x" * (2 << 20)
    assert export_traces(timezone.now()) == 0
    assert "answers with more than 1,048,576 bytes" in caplog.text
    assert EndedRun.objects.count() == 1


def test_beyond_the_maximum_the_oldest_runs_are_dropped(ring: Series, collector: Collector) -> None:
    runs = [builders.passed(ring, timezone.now() - (9 - number) * MINUTE) for number in range(3)]
    assert export_traces(timezone.now(), most_waiting=2) == 2
    sent = {span.trace_id for span in collector.spans}
    assert sent == {run.pk.bytes for run in runs[1:]}


def test_a_run_without_a_report_has_no_trace(ring: Series, collector: Collector) -> None:
    slot = timezone.now() - MINUTE
    builders.not_run(ring, slot, State.MISSED, "no report")
    assert export_traces(timezone.now()) == 0
    late = builders.passed(ring, slot)
    assert export_traces(timezone.now()) == 1
    assert collector.spans[0].trace_id == late.pk.bytes


def test_a_deleted_run_and_a_deleted_report_stop_nothing(ring: Series, collector: Collector) -> None:
    deleted, stripped, kept = (
        builders.passed(ring, timezone.now() - (3 - number) * MINUTE) for number in range(3)
    )
    Run.objects.filter(pk=deleted.pk).delete()
    RawReport.objects.filter(run=stripped.pk).delete()
    assert export_traces(timezone.now()) == 1
    assert {span.trace_id for span in collector.spans} == {kept.pk.bytes}
    assert not EndedRun.objects.exists()


def test_without_an_endpoint_no_run_is_kept(ring: Series, collector: Collector, settings: Any) -> None:
    builders.passed(ring, timezone.now() - MINUTE)
    settings.GRIDCAST_OTLP_ENDPOINT = ""
    assert export_traces(timezone.now()) == 0
    assert not EndedRun.objects.exists()
    assert not RunSubscriber.objects.exists()
