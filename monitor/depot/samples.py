"""Samples on plain PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection, models

from monitor.models import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

CHUNK = 5_000

_UPSERT = """
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::float8[], %s::boolean[])
ON CONFLICT (metric_id, time) DO NOTHING
"""


@dataclass(frozen=True)
class Row:
    """One value to be stored; see ``monitor.models.Sample``."""

    metric_id: int
    time: datetime
    known_at: datetime
    value: float
    passed: bool


def write(rows: Sequence[Row]) -> None:
    """Store *rows*; those that are there already stay as they are."""
    columns = [[getattr(row, name) for row in rows] for name in Row.__dataclass_fields__]
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, columns)


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
    """(time, metric, known at, value) of several metrics, in order of time. The database keeps them and hands
    out a chunk at a time: they never all lie here."""
    values = Sample.objects.filter(metric_id__in=list(metric_ids))
    if start is not None:
        values = values.filter(time__gte=start)
    if end is not None:
        values = values.filter(time__lte=end)
    columns = ("time", "metric_id", "known_at", "value")
    return values.order_by("time", "metric_id").values_list(*columns).iterator(chunk_size=CHUNK)
