"""Reports over HTTP: batches against COPY of their samples, single ones against a view that inserts a row.

Server and client are the same for both: gridcast's web server as the demo starts it, on a socket.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

from django.contrib.auth.models import Permission, User
from django.db import connection

from monitor.models import ApiToken, Heartbeat, Metric, Reporter, Sample
from monitor.models.reporter import HOME
from monitor.models.token import REPORT
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters import report as wire
from reporters.config import ResourceConfig
from reporters.usage import ResourceUsage
from tests.bench import web
from tests.bench.base import Result, interleaved, seconds
from tests.monitor.builders import circle_report

SERIES = 100
REPORTS = 500  # per batch
METRICS = 12  # of a report: 4 stages, 3 totals, and its own
BATCHES = 7
SINGLES = 960  # per round
ROUNDS = 7
CLIENTS = 32
BINDINGS = {"ring": ("here", "there")}
USED = {name: ResourceUsage(2000, 2000, 0.0) for name in BINDINGS["ring"]}
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=12)  # recent
MINUTE = timedelta(minutes=1)
_COLUMNS = "metric_id, time, known_at, value, passed"


def measure() -> list[Result]:
    names = [f"circle-{number}" for number in range(SERIES)]
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    define(resources, [SeriesDefinition(name, "circle", {"ring": ["here", "there"]}) for name in names])
    bodies = _bodies(names)
    with web.serving("tests.bench.insert") as address:
        ask = web.asking(address, _token())
        _together(ask, [next(bodies) for _ in range(REPORTS)])  # creates segments, metrics and partitions
        return [_batches(ask, bodies), _singles(ask, bodies)]


def _batches(ask: Callable[[str, bytes], bytes], bodies: Iterator[bytes]) -> Result:
    """Measure batches and COPY of as many samples of the same metrics, in turn."""
    metrics = list(Metric.objects.values_list("pk", flat=True))
    http_seconds, copied = [], []
    for number in range(BATCHES):
        batch = [next(bodies) for _ in range(REPORTS)]
        before = Sample.objects.count()
        http_seconds.append(seconds(lambda batch=batch: _together(ask, batch)))  # type: ignore[misc]
        samples = Sample.objects.count() - before
        if samples != REPORTS * METRICS:
            raise AssertionError(f"{samples} samples of {REPORTS} reports")
        copied.append(_copy(metrics, samples, number))
    samples_a_batch = REPORTS * METRICS
    http, limit = statistics.median(http_seconds), statistics.median(copied)
    return Result(
        name="reports by HTTP, 500 at once / COPY",
        ratio=limit / http,
        target=0.15,
        better="higher",
        figures={
            "by HTTP, samples/s": samples_a_batch / http,
            "by HTTP, reports/s": REPORTS / http,
            "COPY, samples/s": samples_a_batch / limit,
        },
    )


def _singles(ask: Callable[[str, bytes], bytes], bodies: Iterator[bytes]) -> Result:
    """Prepare both before sending: only the web server and its clients are measured."""
    rounds = range(ROUNDS + 1)
    rows = iter([[_row(number * SINGLES + single) for single in range(SINGLES)] for number in rounds])
    reports = iter([[next(bodies) for _ in range(SINGLES)] for _ in rounds])

    def insert() -> None:
        _each(lambda row: ask("/bare", row), next(rows))

    def report() -> None:
        _each(lambda body: ask("/api/v1/reports", body), next(reports))

    insert()
    report()
    bare, ours = interleaved(insert, report, ROUNDS)
    Heartbeat.objects.filter(name__startswith="bare-").delete()
    return Result(
        name="reports by HTTP, one by one / a view that inserts a row",
        ratio=bare / ours,
        target=0.7,
        better="higher",
        figures={"reports/s": SINGLES / ours, "rows by a bare view/s": SINGLES / bare},
    )


def _row(number: int) -> bytes:
    return json.dumps({"name": f"bare-{number}"}).encode()


def _each(ask: Callable[[bytes], bytes], bodies: Sequence[bytes]) -> None:
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(ask, bodies))


def _together(ask: Callable[[str, bytes], bytes], batch: Sequence[bytes]) -> None:
    answer = json.loads(ask("/api/v1/reports", b"[" + b",".join(batch) + b"]"))
    if answer["refused"] or len(answer["receipts"]) != len(batch):
        raise AssertionError(answer)


def _bodies(series: Sequence[str]) -> Iterator[bytes]:
    """Yield reports of *series* in turn, each with ``METRICS`` metrics."""
    own = [wire.MetricValue(f"own.{number}", 0.5 + number, "bytes") for number in range(METRICS - 7)]
    for number in count():
        slot = START + number // len(series) * MINUTE
        report = circle_report(slot, series=series[number % len(series)], ring_seconds=4 + number % 7 / 10)
        yield wire.to_json(replace(report, metrics=own, bindings=BINDINGS, usage=USED))


def _copy(metrics: Sequence[int], samples: int, batch: int) -> float:
    """Return the seconds of COPY for the rows of a batch into an equal table: the upper limit of ingest."""
    each = samples // len(metrics)
    first = START + timedelta(days=400 + batch)
    rows = [
        (metric, first + number * MINUTE, first, 1.5, True) for number in range(each) for metric in metrics
    ]
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS limit_of_copy (LIKE monitor_sample INCLUDING ALL)")

        def write() -> None:
            with cursor.copy(f"COPY limit_of_copy ({_COLUMNS}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

        return seconds(write)


def _token() -> str:
    user = User.objects.create_user("reporter")
    user.user_permissions.add(Permission.objects.get(codename="add_rawreport"))
    return ApiToken.objects.issue(user, "reporter", [REPORT], Reporter.objects.get(name=HOME))
