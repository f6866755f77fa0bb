"""The one query service for samples: what pages, API and forecasts read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Subquery

from monitor.depot import samples
from monitor.models import Metric

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from monitor.models import Run, Series


@dataclass(frozen=True)
class Point:
    """One value of a metric: when its run was due, when it was known, what it was."""

    time: datetime
    known_at: datetime
    value: float
    passed: bool


@dataclass(frozen=True)
class RunMetric:
    """One metric of one run."""

    name: str
    value: float
    unit: str


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
    rows = samples.read(
        [metric.pk], start=start, end=end, known_by=known_by, passed_only=passed_only, newest=newest
    )
    return [Point(row.time, row.known_at, row.value, row.passed) for row in rows]


def histories(
    series: Series, names: list[str], *, start: datetime | None = None, passed_only: bool = True
) -> dict[str, list[Point]]:
    """Several metrics of one series at once, by name; a name that was never measured is absent."""
    by_id = dict(Metric.objects.filter(series=series, name__in=names).values_list("pk", "name"))
    found: dict[str, list[Point]] = {}
    for row in samples.read(by_id, start=start, passed_only=passed_only):
        point = Point(row.time, row.known_at, row.value, row.passed)
        found.setdefault(by_id[row.metric_id], []).append(point)
    return found


def of_run(run: Run) -> list[RunMetric]:
    """Everything that one run measured, by name."""
    metrics = {metric.pk: metric for metric in Metric.objects.filter(series=run.series_id)}
    rows = samples.read(metrics, start=run.slot, end=run.slot, passed_only=False)
    found = [RunMetric(metrics[row.metric_id].name, row.value, metrics[row.metric_id].unit) for row in rows]
    return sorted(found, key=lambda metric: metric.name)


def each_value(
    series: Series, *, start: datetime, end: datetime
) -> Iterator[tuple[datetime, str, float, str]]:
    """(time, metric, value, unit) of all that *series* measured, in order of time, never all at once."""
    return samples.stream(series.pk, start=start, end=end)


def newest_values(count: int) -> ArraySubquery:
    """For a queryset of metrics: the *count* newest values of passed runs of each, newest first."""
    return ArraySubquery(samples.newest("pk").values("value")[:count])


def last_known_at(metric: Metric, *, known_by: datetime, newest: int) -> datetime | None:
    """When the latest news among the *newest* values of passed runs became known; None without any."""
    return samples.last_known_at(metric.pk, known_by=known_by, newest=newest)


def first_known_later(field: str, metric: str, *, than: str, after: str) -> Subquery:
    """For a queryset: *field* ("value" or "time") of the first passed run after slot *after* that became
    known later *than*; the other arguments name the queryset's fields. NULL while there is none.
    """
    return Subquery(samples.known_later(metric, than=than, after=after).values(field)[:1])
