"""Select stored reports to be parsed again, and replace their samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from psycopg.rows import class_row

from monitor.core.db import binary

if TYPE_CHECKING:
    import uuid

_NEXT = """
SELECT raw.run_id AS run, raw.slot, run.series_id AS series
FROM monitor_rawreport AS raw JOIN monitor_run AS run ON run.id = raw.run_id AND run.slot = raw.slot
WHERE raw.parsed_by < %(version)s AND (raw.slot, raw.run_id) > (%(slot)s, %(run)s) AND raw.slot >= %(slot)s
    AND run.slot >= %(slot)s AND (%(series)s::bigint[] IS NULL OR run.series_id = ANY (%(series)s::bigint[]))
ORDER BY raw.slot, raw.run_id LIMIT %(at_most)s
"""
# In the order in which ingest locks runs.
_LOCK = """
SELECT run.id FROM unnest(%s::uuid[], %s::timestamptz[]) AS wanted (run, slot)
JOIN monitor_run AS run ON run.id = wanted.run AND run.slot = wanted.slot AND run.slot BETWEEN %s AND %s
ORDER BY run.id FOR NO KEY UPDATE OF run
"""
_BODIES = """
SELECT raw.run_id, packing, packed FROM unnest(%s::uuid[], %s::timestamptz[]) AS wanted (run, slot)
JOIN monitor_rawreport AS raw ON raw.run_id = wanted.run AND raw.slot = wanted.slot
WHERE raw.slot BETWEEN %s AND %s AND parsed_by < %s
"""
_SAMPLES = """
SELECT segment.series_id AS series, sample.time, sample.metric_id AS metric, known_at, value, passed
FROM (SELECT DISTINCT * FROM unnest(%s::bigint[], %s::timestamptz[]) AS runs (series, slot)) AS wanted
JOIN monitor_segment AS segment ON segment.series_id = wanted.series
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
JOIN monitor_sample AS sample ON sample.metric_id = metric.id AND sample.time = wanted.slot
WHERE sample.time BETWEEN %s AND %s
"""
_DELETE = """
DELETE FROM monitor_sample AS sample USING unnest(%s::bigint[], %s::timestamptz[]) AS removed (metric, slot)
WHERE sample.metric_id = removed.metric AND sample.time = removed.slot AND sample.time BETWEEN %s AND %s
"""
_UPSERT = """
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::float8[], %s::boolean[])
ON CONFLICT (metric_id, time) DO UPDATE
SET known_at = EXCLUDED.known_at, value = EXCLUDED.value, passed = EXCLUDED.passed
"""
_SET_VERSION = """
UPDATE monitor_rawreport AS raw SET parsed_by = %s
FROM unnest(%s::uuid[], %s::timestamptz[]) AS parsed (run, slot)
WHERE raw.run_id = parsed.run AND raw.slot = parsed.slot AND raw.slot BETWEEN %s AND %s
"""


class StoredReport(NamedTuple):
    """A stored raw report: the key of its run, its slot, and the key of its series."""

    run: uuid.UUID
    slot: datetime
    series: int


class StoredSample(NamedTuple):
    """A sample that is stored, or is to be stored; *series* and *metric* are primary keys."""

    series: int
    time: datetime
    metric: int
    known_at: datetime
    value: float
    passed: bool


def after(
    slot: datetime, run: uuid.UUID, *, version: int, series: Collection[int] | None, at_most: int
) -> list[StoredReport]:
    """Return the next reports after (*slot*, *run*), in this order, whose parser was older than *version*.

    Only reports of *series* are read (primary keys; None: all).
    """
    parameters: dict[str, Any] = {
        "slot": slot,
        "run": run,
        "version": version,
        "series": None if series is None else list(series),
        "at_most": at_most,
    }
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(StoredReport)
        reports: list[StoredReport] = cursor.execute(_NEXT, parameters).fetchall()
        return reports


def lock(reports: Sequence[StoredReport], *, version: int) -> dict[uuid.UUID, tuple[int, bytes]]:
    """Lock the runs of *reports*; return the reports that a parser before *version* parsed.

    The result maps each run to (packing, bytes) of its report.
    """
    parameters: list[Any] = _runs_and_bounds(reports)
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, parameters)
        cursor.execute(_BODIES, [*parameters, version])
        return {run: (packing, bytes(packed)) for run, packing, packed in cursor.fetchall()}


def samples(reports: Sequence[StoredReport]) -> list[StoredSample]:
    """Return the stored samples at the slots of *reports*, from all segments of the series."""
    parameters = [
        [report.series for report in reports],
        [report.slot for report in reports],
        *_bounds(reports),
    ]
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(StoredSample)
        rows: list[StoredSample] = cursor.execute(_SAMPLES, parameters).fetchall()
        return rows


def replace(removed: Sequence[StoredSample], stored: Sequence[StoredSample]) -> None:
    """Delete the samples *removed*; insert or update the samples *stored*."""
    with connection.cursor() as cursor:
        if removed:
            times = [sample.time for sample in removed]
            cursor.execute(_DELETE, [[sample.metric for sample in removed], times, min(times), max(times)])
        if stored:
            rows = [
                (sample.metric, sample.time, sample.known_at, sample.value, sample.passed)
                for sample in stored
            ]
            cursor.execute(_UPSERT, [list(column) for column in zip(*rows, strict=True)])


def set_version(reports: Sequence[StoredReport], *, version: int) -> None:
    """Record that *version* of the parser extracted the samples of *reports*."""
    with connection.cursor() as cursor:
        cursor.execute(_SET_VERSION, [version, *_runs_and_bounds(reports)])


def _runs_and_bounds(reports: Sequence[StoredReport]) -> list[Any]:
    return [[report.run for report in reports], [report.slot for report in reports], *_bounds(reports)]


def _bounds(reports: Iterable[StoredReport]) -> tuple[datetime, datetime]:
    """Return the earliest and the latest slot of *reports*, with which PostgreSQL prunes partitions."""
    slots = [report.slot for report in reports]
    return min(slots), max(slots)
