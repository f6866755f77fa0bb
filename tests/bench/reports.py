"""Reports by HTTP: many together against COPY of their samples, one by one against a view that inserts a row.

The web is gridcast's own, as the demo starts it, on a socket; so is the client's, for both the same.
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

from monitor.gridfile.define import SeriesDefinition, define
from monitor.models import ApiToken, Heartbeat, Metric, Sample
from monitor.models.token import REPORT
from reporters import report as wire
from reporters.config import ResourceConfig
from reporters.usage import ResourceUsage
from tests.bench import web
from tests.bench.base import Result, interleaved, seconds
from tests.monitor.builders import circle_report

SERIES = 100
REPORTS = 500  # in a batch
METRICS = 12  # of a report: 4 stages, 3 totals, and its own
BATCHES = 7
SINGLES = 960  # a round
ROUNDS = 7
CLIENTS = 32
BINDINGS = {"ring": ("here", "there")}
USED = {name: ResourceUsage(2000, 2000, 0.0) for name in BINDINGS["ring"]}
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=12)  # as reports mostly are
MINUTE = timedelta(minutes=1)
_COLUMNS = "metric_id, time, known_at, value, passed"


def measure() -> list[Result]:
    names = [f"circle-{number}" for number in range(SERIES)]
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    define(resources, [SeriesDefinition(name, "circle", {"ring": ["here", "there"]}) for name in names])
    bodies = _bodies(names)
    with web.serving("tests.bench.insert") as address:
        ask = web.asking(address, _token())
        _together(ask, [next(bodies) for _ in range(REPORTS)])  # segments and metrics are there, and parts
        return [_batches(ask, bodies), _singles(ask, bodies)]


def _batches(ask: Callable[[str, bytes], bytes], bodies: Iterator[bytes]) -> Result:
    """Each batch, and then COPY of as many other samples of the same metrics, in turn."""
    metrics = list(Metric.objects.values_list("pk", flat=True))
    took, copied = [], []
    for number in range(BATCHES):
        batch = [next(bodies) for _ in range(REPORTS)]
        before = Sample.objects.count()
        took.append(seconds(lambda batch=batch: _together(ask, batch)))  # type: ignore[misc]
        samples = Sample.objects.count() - before
        if samples != REPORTS * METRICS:
            raise AssertionError(f"{samples} samples of {REPORTS} reports")
        copied.append(_copy(metrics, samples, number))
    samples_a_batch = REPORTS * METRICS
    http, limit = statistics.median(took), statistics.median(copied)
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
    """Both are made before they are sent: what is measured is the web, and what its clients need to ask."""
    rounds = range(ROUNDS + 1)
    rows = iter([[_row(number * SINGLES + one) for one in range(SINGLES)] for number in rounds])
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
        target=0.5,
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
    """Reports of *series* in turn, each of ``METRICS`` metrics."""
    own = [wire.MetricValue(f"own.{number}", 0.5 + number, "bytes") for number in range(METRICS - 7)]
    for number in count():
        slot = START + number // len(series) * MINUTE
        report = circle_report(slot, series=series[number % len(series)], ring_seconds=4 + number % 7 / 10)
        yield wire.to_json(replace(report, metrics=own, bindings=BINDINGS, usage=USED))


def _copy(metrics: Sequence[int], samples: int, batch: int) -> float:
    """Seconds that the limit takes: rows as a batch makes, into a table such as theirs; nothing is parsed,
    nothing checked."""
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
    return ApiToken.objects.issue(user, "reporter", [REPORT])
