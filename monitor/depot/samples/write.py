"""Samples on plain PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from django.db import IntegrityError, models, transaction
from psycopg.errors import UniqueViolation

from monitor.db import binary
from monitor.models import Sample

CHUNK = 5_000

_INSERT = """
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT * FROM unnest(%b::bigint[], %b::timestamptz[], %b::timestamptz[], %b::float8[], %b::boolean[])
ON CONFLICT (metric_id, time) DO NOTHING
"""
_COPY = "COPY monitor_sample (metric_id, time, known_at, value, passed) FROM STDIN (FORMAT binary)"
_HEAD, _TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_COPIED = np.dtype(
    [
        ("columns", ">i2"),
        *[("metric_id_bytes", ">i4"), ("metric_id", ">i8")],
        *[("time_bytes", ">i4"), ("time", ">i8")],
        *[("known_at_bytes", ">i4"), ("known_at", ">i8")],
        *[("value_bytes", ">i4"), ("value", ">f8")],
        *[("passed_bytes", ">i4"), ("passed", "?")],
    ]
)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MANY = 100  # samples: of fewer, one statement costs less than to begin and end copying


class SampleRow(NamedTuple):
    """One value to be stored; see ``monitor.models.Sample``."""

    metric_id: int
    time: datetime
    known_at: datetime
    value: float
    passed: bool


class RunSamples(NamedTuple):
    """The values of one run, each of another metric: they share all the rest."""

    metric_ids: Sequence[int]
    time: datetime
    known_at: datetime
    values: Sequence[float]
    passed: bool


def write(rows: Iterable[SampleRow]) -> None:
    """Store *rows*; those that are there already stay as they are. To be called in a transaction."""
    write_runs([RunSamples([row.metric_id], row.time, row.known_at, [row.value], row.passed) for row in rows])


def are_copied(runs: Sequence[RunSamples]) -> bool:
    """Whether ``write_runs`` copies them: they are many."""
    return sum(len(run.values) for run in runs) >= _MANY


def write_runs(runs: Sequence[RunSamples]) -> None:
    """As ``write``, all samples of each of *runs*."""
    if not are_copied(runs):
        return _insert(runs)
    try:
        with transaction.atomic():
            _copy(runs)
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):  # copying stops at the first that is there
            raise
        _insert(runs)
    return None


def _insert(runs: Sequence[RunSamples]) -> None:
    rows = [
        SampleRow(metric, run.time, run.known_at, value, run.passed)
        for run in runs
        for metric, value in zip(run.metric_ids, run.values, strict=True)
    ]
    if rows:
        with binary.cursor() as cursor:
            cursor.execute(_INSERT, [list(column) for column in zip(*rows, strict=True)])


def _copy(runs: Sequence[RunSamples]) -> None:
    with binary.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(_HEAD + _copied(runs).tobytes() + _TAIL)


def _copied(runs: Sequence[RunSamples]) -> np.ndarray[Any, Any]:
    """Their rows as COPY takes them in binary: the number of columns; of each its length, and its value."""
    each = [len(run.values) for run in runs]
    rows = np.empty(sum(each), dtype=_COPIED)
    rows["columns"] = len(SampleRow._fields)
    for name in SampleRow._fields:
        rows[f"{name}_bytes"] = rows[name].itemsize
    rows["metric_id"] = list(chain.from_iterable(run.metric_ids for run in runs))
    rows["time"] = np.repeat([_microseconds(run.time) for run in runs], each)
    rows["known_at"] = np.repeat([_microseconds(run.known_at) for run in runs], each)
    rows["value"] = list(chain.from_iterable(run.values for run in runs))
    rows["passed"] = np.repeat([run.passed for run in runs], each)
    return rows


def _microseconds(time: datetime) -> int:
    """Since PostgreSQL's epoch."""
    return (time - _EPOCH) // _MICROSECOND


def read(
    metric_ids: Iterable[int],
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    known_by: datetime | None = None,
    passed_only: bool = True,
    newest: int | None = None,
) -> list[Sample]:
    """Samples in order of time; with *newest*, only that many of the latest."""
    samples = Sample.objects.filter(metric_id__in=list(metric_ids))
    if start is not None:
        samples = samples.filter(time__gte=start)
    if end is not None:
        samples = samples.filter(time__lte=end)
    if known_by is not None:
        samples = samples.filter(known_at__lte=known_by)
    if passed_only:
        samples = samples.filter(passed=True)
    if newest is None:
        return list(samples.order_by("time"))
    return list(samples.order_by("-time")[:newest])[::-1]


def last_known_at(metric_id: int, *, known_by: datetime, newest: int) -> datetime | None:
    """When the latest news among the *newest* values of passed runs became known; None without any."""
    latest = Sample.objects.filter(metric_id=metric_id, passed=True, known_at__lte=known_by).order_by("-time")
    known: datetime | None = latest[:newest].aggregate(at=models.Max("known_at"))["at"]
    return known


def known_later(metric: str, *, than: str, after: str, by: datetime | None = None) -> models.QuerySet[Sample]:
    """Values of passed runs, earliest first, for a subquery.

    They became known later *than*, and not later than *by*, and are of slots *after*; *metric*, *than* and
    *after* name fields of the outer query.
    """
    later = Sample.objects.filter(
        metric=models.OuterRef(metric), passed=True, known_at__gt=models.OuterRef(than)
    )
    if by is not None:
        later = later.filter(known_at__lte=by)
    return later.filter(time__gt=models.OuterRef(after)).order_by("time")


def newest(metric: str) -> models.QuerySet[Sample]:
    """Values of passed runs, newest first, for a subquery; *metric* names a field of the outer query."""
    return Sample.objects.filter(metric=models.OuterRef(metric), passed=True).order_by("-time")


def stream(
    metric_ids: Iterable[int], *, start: datetime | None, end: datetime | None
) -> Iterator[tuple[datetime, int, datetime, float]]:
    """(time, metric, known at, value) of several metrics, from *start* until before *end*, in order of time.

    The database keeps them and hands out a chunk at a time: they never all lie here.
    """
    values = Sample.objects.filter(metric_id__in=list(metric_ids))
    if start is not None:
        values = values.filter(time__gte=start)
    if end is not None:
        values = values.filter(time__lt=end)
    columns = ("time", "metric_id", "known_at", "value")
    return values.order_by("time", "metric_id").values_list(*columns).iterator(chunk_size=CHUNK)
