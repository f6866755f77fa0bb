"""Taking reports in, against COPY of the same samples into the same table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.db import connection

from monitor.models import Sample
from monitor.services.define import SeriesDefinition, define
from monitor.services.ingest import ingest
from reporters import report as wire
from reporters.config import Resource
from tests.bench.base import Result, seconds
from tests.monitor.builders import circle_report

REPORTS = 500
START = datetime(2026, 1, 1, tzinfo=UTC)


def measure() -> list[Result]:
    resources = [Resource(name, name, str(Path("/") / name)) for name in ("here", "there")]
    define(resources, [SeriesDefinition("circle", "circle", {"ring": ["here", "there"]})])
    bodies = [wire.to_json(circle_report(START + timedelta(minutes=i))) for i in range(REPORTS)]
    service_seconds = seconds(lambda: [ingest(body) for body in bodies])
    samples = Sample.objects.count()
    copy_seconds = seconds(_copy_what_is_there)
    return [
        Result(
            name="ingest, one report at a time / COPY",
            ratio=copy_seconds / service_seconds,
            target=0.005,
            better="higher",
            figures={
                "ingested, samples/s": samples / service_seconds,
                "ingested, reports/s": REPORTS / service_seconds,
                "COPY, samples/s": samples / copy_seconds,
            },
        )
    ]


def _copy_what_is_there() -> None:
    """The limit: the same rows, the same indexes, nothing parsed and nothing checked."""
    columns = ["metric_id", "time", "known_at", "value", "passed"]
    rows = list(Sample.objects.values_list(*columns))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE limit_of_copy (LIKE monitor_sample INCLUDING ALL)")
        with cursor.copy(f"COPY limit_of_copy ({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute("DROP TABLE limit_of_copy")
