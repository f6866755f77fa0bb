"""Ingest of reports against COPY of the same samples into an equal table; bytes per stored report."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from django.db import connection

from monitor.models import RawReport, Run, Sample, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest, ingest_all
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.bench.base import Result, seconds
from tests.monitor.builders import gather_report

SERIES = 50
BATCH = 500  # reports
BATCHES = 20
ONE_BY_ONE = 300
SAMPLES = 12  # per report
START = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(days=1)  # all slots lie in the past
EVERY = timedelta(minutes=5)
_COLUMNS = "metric_id, time, known_at, value, passed"


def measure() -> list[Result]:
    define_series()
    reports = drawn_bodies()
    ingest_seconds, copied, sizes = [], [], []
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE limit_of_copy (LIKE monitor_sample INCLUDING ALL) PARTITION BY RANGE (time)"
        )
        cursor.execute(
            "CREATE TABLE limit_of_copy_2026 PARTITION OF limit_of_copy FOR VALUES FROM ('2026-01-01')"
            " TO ('2027-01-01')"
        )
    for _ in range(BATCHES):
        batch = [next(reports) for _ in range(BATCH)]
        expect(batch)
        ingest_seconds.append(seconds(lambda batch=batch: _ingest(batch)))  # type: ignore[misc]
        copied.append(_copy([wire.from_json(body).slot for body in batch]))
        sizes.append(sum(map(len, batch)))
    alone = [next(reports) for _ in range(ONE_BY_ONE)]
    expect(alone)
    alone_seconds = statistics.median(seconds(lambda body=body: ingest(body)) for body in alone)  # type: ignore[misc]
    return [
        _batch_result(statistics.median(ingest_seconds), statistics.median(copied)),
        _single_result(alone_seconds, statistics.median(copied) / BATCH),
        _size_result(sum(sizes) + sum(map(len, alone))),
    ]


def _batch_result(batch_seconds: float, copy_seconds: float) -> Result:
    return Result(
        name="ingest, batches of 500 / COPY",
        ratio=copy_seconds / batch_seconds,
        target=0.25,
        better="higher",
        figures={
            "ingested, samples/s": BATCH * SAMPLES / batch_seconds,
            "ingested, reports/s": BATCH / batch_seconds,
            "COPY, samples/s": BATCH * SAMPLES / copy_seconds,
        },
    )


def _single_result(report_seconds: float, copy_seconds: float) -> Result:
    return Result(
        name="ingest, one report at a time / COPY",
        ratio=copy_seconds / report_seconds,
        target=0.015,
        better="higher",
        figures={"ingested, reports/s": 1 / report_seconds, "one report, ms": report_seconds * 1000},
    )


def _size_result(json_bytes: int) -> Result:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('monitor_rawreport')"
        )
        (stored_bytes,) = cursor.fetchone()
    reports = RawReport.objects.count()
    return Result(
        name="raw reports with rows and keys / their JSON",
        ratio=float(stored_bytes) / json_bytes,
        target=0.25,
        better="lower",
        figures={"JSON, bytes": json_bytes / reports, "stored, bytes": float(stored_bytes) / reports},
    )


def define_series() -> None:
    resources = [ResourceConfig(name, f"site-of-{name}", f"/{name}") for name in ("alpha", "beta", "gamma")]
    bindings = {"sources": ["alpha"], "compute": ["beta"], "destination": ["gamma"]}
    define(resources, [SeriesDefinition(f"gather-{n}", "gather", bindings) for n in range(SERIES)])


def drawn_bodies() -> Iterator[bytes]:
    """Yield reports of 12 samples, of all series in turn."""
    numbers = random.Random(1)
    slot = START
    while True:
        for number in range(SERIES):
            yield wire.to_json(gather_report(slot, series=f"gather-{number}", numbers=numbers))
        slot += EVERY


def expect(bodies: Sequence[bytes]) -> None:
    """Put the runs of the reports into the ledger, as the schedule does."""
    keys = dict(Series.objects.values_list("name", "pk"))
    reports = [wire.from_json(body) for body in bodies]
    Run.objects.bulk_create(
        Run(id=report.run, series_id=keys[report.series], slot=report.slot, due_at=report.slot)
        for report in reports
    )


def _ingest(bodies: Sequence[bytes]) -> None:
    refused = [receipt.error for receipt in ingest_all(bodies) if not receipt.accepted or receipt.duplicate]
    if refused:
        raise AssertionError(f"{len(refused)} are not new: {refused[0]}")


def _copy(slots: Sequence[datetime]) -> float:
    """Return the seconds of COPY for the samples of these slots: the upper limit of ingest."""
    samples = Sample.objects.filter(time__gte=min(slots), time__lte=max(slots))
    rows = list(samples.values_list(*_COLUMNS.split(", ")))
    if len(rows) != BATCH * SAMPLES:
        raise AssertionError(f"{len(rows)} samples of {BATCH} reports")
    return seconds(lambda: _write(rows))


def _write(rows: Sequence[tuple[object, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY limit_of_copy ({_COLUMNS}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
