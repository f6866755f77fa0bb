"""The one query service for samples: what pages, API and forecasts read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Subquery

from monitor.depot.samples import write
from monitor.models import Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from monitor.models import Run, Segment, Series


@dataclass(frozen=True)
class Point:
    """One value of a metric: the key of its segment, when its run was due, when it was known, what it was."""

    segment: int
    time: datetime
    known_at: datetime
    value: float
    passed: bool


@dataclass(frozen=True)
class RunMetric:
    """One metric of one run; all of one run are of one segment."""

    name: str
    value: float
    unit: str
    segment: Segment


def history(
    metric: Metric,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    known_by: datetime | None = None,
    passed_only: bool = True,
    newest: int | None = None,
) -> list[Point]:
    """Values of *metric* in order of time, by default of passed runs only.

    With *known_by*, only what was known at that moment: the way to look at the past without its future.
    """
    rows = write.read(
        [metric.pk], start=start, end=end, known_by=known_by, passed_only=passed_only, newest=newest
    )
    return [Point(metric.segment_id, row.time, row.known_at, row.value, row.passed) for row in rows]


def histories(
    series: Series, names: list[str], *, start: datetime | None = None, passed_only: bool = True
) -> dict[str, list[Point]]:
    """Several metrics of one series at once, by name, of all its segments: each point says which it is of.

    A name that was never measured is absent.
    """
    wanted = Metric.objects.filter(segment__series=series, name__in=names)
    by_id = {pk: (name, segment) for pk, name, segment in wanted.values_list("pk", "name", "segment_id")}
    found: dict[str, list[Point]] = {}
    for row in write.read(by_id, start=start, passed_only=passed_only):
        name, segment = by_id[row.metric_id]
        found.setdefault(name, []).append(Point(segment, row.time, row.known_at, row.value, row.passed))
    return found


def of_run(run: Run) -> list[RunMetric]:
    """Everything that one run measured, by name."""
    all_segments = Metric.objects.filter(segment__series=run.series_id).select_related("segment")
    metrics = {metric.pk: metric for metric in all_segments}
    rows = write.read(metrics, start=run.slot, end=run.slot, passed_only=False)
    found = [(metrics[row.metric_id], row.value) for row in rows]
    measured = [RunMetric(metric.name, value, metric.unit, metric.segment) for metric, value in found]
    return sorted(measured, key=lambda metric: metric.name)


def each_value(
    metric_ids: Iterable[int], *, start: datetime | None, end: datetime | None
) -> Iterator[tuple[datetime, int, datetime, float]]:
    """(time, key of the metric, when it was known, value) of several metrics, in order of time, never all at
    once."""
    return write.stream(metric_ids, start=start, end=end)


def newest_values(count: int) -> ArraySubquery:
    """For a queryset of metrics: the *count* newest values of passed runs of each, newest first."""
    return ArraySubquery(write.newest("pk").values("value")[:count])


def newest_time() -> Subquery:
    """For a queryset of metrics: the slot of the newest value of passed runs of each; NULL without any."""
    return nth_newest_time(1)


def nth_newest_time(number: int) -> Subquery:
    """For a queryset of metrics: the slot of the *number*-th newest value of passed runs of each, from 1 on;
    NULL where there are fewer.
    """
    return Subquery(write.newest("pk").values("time")[number - 1 : number])


def last_known_at(metric: Metric, *, known_by: datetime, newest: int) -> datetime | None:
    """When the latest news among the *newest* values of passed runs became known; None without any."""
    return write.last_known_at(metric.pk, known_by=known_by, newest=newest)


def first_known_later(
    field: str, metric: str, *, than: str, after: str, by: datetime | None = None
) -> Subquery:
    """For a queryset: *field* ("value" or "time") of the first passed run after slot *after* that became
    known later *than*, and not later than *by*; *metric*, *than* and *after* name the queryset's fields. NULL
    while there is none.
    """
    return Subquery(write.known_later(metric, than=than, after=after, by=by).values(field)[:1])
