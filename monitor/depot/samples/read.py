"""Read samples as rows; ``sample_arrays`` reads them as arrays to compute with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BigIntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Cast, Extract

from monitor.models import Metric, Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from monitor.models import Run, Segment, Series

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STREAMED_ROWS = 5_000  # fetched from the server at a time


@dataclass(frozen=True)
class Point:
    """One value of a metric. *segment* is a primary key; *time* is the slot of the run."""

    segment: int
    time: datetime
    known_at: datetime
    value: float
    passed: bool


@dataclass(frozen=True)
class RunMetric:
    """One metric of one run; all metrics of a run belong to one segment."""

    name: str
    value: float
    unit: str
    segment: Segment


def samples_of(
    metric_ids: Iterable[int],
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    known_by: datetime | None = None,
    passed_only: bool = True,
    newest: int | None = None,
) -> list[Sample]:
    """Return samples from *start* to *end* (included) in order of time.

    With *known_by*, return only samples that were known at *known_by*. With *newest*, return only the last
    *newest* samples.
    """
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


def history(
    metric: Metric,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    known_by: datetime | None = None,
    passed_only: bool = True,
    newest: int | None = None,
) -> list[Point]:
    """Return the values of *metric*; see ``samples_of`` for the selection."""
    rows = samples_of(
        [metric.pk], start=start, end=end, known_by=known_by, passed_only=passed_only, newest=newest
    )
    return [Point(metric.segment_id, row.time, row.known_at, row.value, row.passed) for row in rows]


def histories(
    series: Series, names: list[str], *, start: datetime | None = None, passed_only: bool = True
) -> dict[str, list[Point]]:
    """Return the values of the metrics *names* of a series by name, over all segments of the series.

    A metric that was never measured is absent.
    """
    metrics = Metric.objects.filter(segment__series=series, name__in=names)
    by_id = {pk: (name, segment) for pk, name, segment in metrics.values_list("pk", "name", "segment_id")}
    points: dict[str, list[Point]] = {}
    for row in samples_of(by_id, start=start, passed_only=passed_only):
        name, segment = by_id[row.metric_id]
        points.setdefault(name, []).append(Point(segment, row.time, row.known_at, row.value, row.passed))
    return points


def of_run(run: Run) -> list[RunMetric]:
    """Return all metrics of one run, in order of name."""
    metrics = {
        metric.pk: metric
        for metric in Metric.objects.filter(segment__series=run.series_id).select_related("segment")
    }
    rows = samples_of(metrics, start=run.slot, end=run.slot, passed_only=False)
    pairs = [(metrics[row.metric_id], row.value) for row in rows]
    measured = [RunMetric(metric.name, value, metric.unit, metric.segment) for metric, value in pairs]
    return sorted(measured, key=lambda metric: metric.name)


def stream(
    metric_ids: Iterable[int], *, start: datetime | None, end: datetime | None
) -> Iterator[tuple[datetime, int, datetime, float]]:
    """Yield (time, key of the metric, known at, value) from *start* until before *end*, in order of time.

    A server-side cursor bounds memory. The rows are plain tuples, as an export reads millions of them.
    """
    samples = Sample.objects.filter(metric_id__in=list(metric_ids))
    if start is not None:
        samples = samples.filter(time__gte=start)
    if end is not None:
        samples = samples.filter(time__lt=end)
    columns = (_microseconds("time"), "metric_id", _microseconds("known_at"), "value")
    rows = samples.order_by("time", "metric_id").values_list(*columns)
    at = known = -1
    time = known_at = EPOCH
    for row_at, metric, row_known, value in rows.iterator(chunk_size=STREAMED_ROWS):
        # The metrics of a run share its times: to parse them again would take a third of an export.
        if row_at != at:
            at, time = row_at, EPOCH + timedelta(microseconds=row_at)
        if row_known != known:
            known, known_at = row_known, EPOCH + timedelta(microseconds=row_known)
        yield time, metric, known_at, value


def _microseconds(column: str) -> Cast:
    """Return a *column* of times as microseconds since 1970: exact, as PostgreSQL computes with decimals."""
    return Cast(Extract(column, "epoch") * 1_000_000, BigIntegerField())


def newest_values(count: int) -> ArraySubquery:
    """Return an annotation for metrics: their *count* newest values of passed runs, newest first."""
    return ArraySubquery(_newest().values("value")[:count])


def newest_time() -> Subquery:
    """Return an annotation for metrics: the slot of the newest value of a passed run; NULL without values."""
    return Subquery(_newest().values("time")[:1])


def _newest() -> QuerySet[Sample]:
    return Sample.objects.filter(metric=OuterRef("pk"), passed=True).order_by("-time")
