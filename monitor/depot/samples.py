"""Samples on plain PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from django.db import IntegrityError, connection, models, transaction
from psycopg.errors import UniqueViolation

from monitor.models import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CHUNK = 5_000

_UPSERT = """
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::float8[], %s::boolean[])
ON CONFLICT (metric_id, time) DO NOTHING
"""


_COPY = "COPY monitor_sample (metric_id, time, known_at, value, passed) FROM STDIN (FORMAT binary)"
_HEAD, _TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_COPIED = np.dtype(
    [("columns", ">i2")]
    + [
        field
        for name, kind in zip(
            ("metric_id", "time", "known_at", "value", "passed"),
            (">i8", ">i8", ">i8", ">f8", "?"),
            strict=True,
        )
        for field in ((f"{name}_bytes", ">i4"), (name, kind))
    ]
)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MANY = 100  # rows: of fewer, one statement costs less than to begin and end copying


class Row(NamedTuple):
    """One value to be stored; see ``monitor.models.Sample``."""

    metric_id: int
    time: datetime
    known_at: datetime
    value: float
    passed: bool


def write(rows: Sequence[Row]) -> None:
    """Store *rows*; those that are there already stay as they are. To be called in a transaction."""
    if len(rows) < _MANY:
        return _insert(rows)
    try:
        with transaction.atomic():
            _copy(rows)
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):  # copying stops at the first that is there
            raise
        _insert(rows)
    return None


def _insert(rows: Sequence[Row]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_UPSERT, [list(column) for column in zip(*rows, strict=True)])


def _copy(rows: Sequence[Row]) -> None:
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(_COPY) as copy:
        copy.write(_HEAD)
        copy.write(_as_copied(rows))
        copy.write(_TAIL)


def _as_copied(rows: Sequence[Row]) -> bytes:
    """*rows* in the binary format of COPY: the number of columns, then of each its length in bytes and its
    value."""
    metrics, times, known, values, passed = zip(*rows, strict=True)
    copied = np.empty(len(rows), dtype=_COPIED)
    copied["columns"] = len(Row._fields)
    for name, column in (
        ("metric_id", np.array(metrics)),
        ("time", _microseconds(times)),
        ("known_at", _microseconds(known)),
        ("value", np.array(values, dtype=float)),
        ("passed", np.array(passed)),
    ):
        copied[f"{name}_bytes"] = copied[name].itemsize
        copied[name] = column
    return copied.tobytes()


def _microseconds(times: Sequence[datetime]) -> np.ndarray[Any, Any]:
    """Since PostgreSQL's epoch. Many are the same."""
    since = {time: (time - _EPOCH) // timedelta(microseconds=1) for time in set(times)}
    return np.array([since[time] for time in times], dtype=np.int64)


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


def known_later(metric: str, *, than: str, after: str) -> models.QuerySet[Sample]:
    """Values of passed runs, earliest first, for a subquery.

    They became known later *than*, and are of slots *after*; the arguments name fields of the outer query.
    """
    later = Sample.objects.filter(
        metric=models.OuterRef(metric), passed=True, known_at__gt=models.OuterRef(than)
    )
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
