"""A depot with rollups beside its model: lists in memory."""

from __future__ import annotations

import math
import statistics as exact
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db import transaction

from monitor.core.db import partitions
from monitor.depot.rollups import mark_dirty
from monitor.depot.rollups.statistics import Every
from monitor.depot.samples import write
from monitor.models import Metric, Sample, Segment, Series

FIRST = datetime(2026, 2, 27, tzinfo=UTC)  # spans two partitions
STEP = timedelta(minutes=10)
DAYS = 4
PERCENTS = (50, 95, 99)


@dataclass(frozen=True)
class Value:
    known_at: datetime
    value: float
    passed: bool


def metrics_of(series: Series, count: int) -> list[Metric]:
    """Create *count* metrics in seconds, each in its own segment."""
    segments = [
        Segment(series=series, number=number, fingerprint=str(number), began_at=FIRST, probe="circle")
        for number in range(1, count + 1)
    ]
    Segment.objects.bulk_create(segments)
    return Metric.objects.bulk_create(
        Metric(segment=segment, name="total.seconds", unit="seconds") for segment in segments
    )


@dataclass
class SampleModel:
    """The model of the depot: the values of each metric by time."""

    values: dict[int, dict[datetime, Value]] = field(default_factory=dict)

    def add(self, metric: int, new: Mapping[datetime, Value]) -> None:
        """Add values; existing ones stay."""
        self.values[metric] = {**new, **self.values.get(metric, {})}

    def within(self, metric: int, start: datetime, end: datetime) -> dict[datetime, Value]:
        samples = self.values.get(metric, {})
        return {time: samples[time] for time in sorted(samples) if start <= time < end}


def figures(values: Iterable[Value]) -> dict[str, float | int | None]:
    """Return the fields of ``SummaryStatistics`` by their definitions."""
    measured = list(values)
    passed = sorted(value.value for value in measured if value.passed)
    counted: dict[str, float | int | None] = {"n": len(measured), "passed": len(passed)}
    if not passed:
        return counted | dict.fromkeys(("mean", "min", "max", "stdev", "p50", "p95", "p99"))
    ranked = {f"p{q}": passed[max(math.ceil(q * len(passed) / 100), 1) - 1] for q in PERCENTS}
    stdev = exact.stdev(passed) if len(passed) > 1 else None
    figures = {"mean": exact.fmean(passed), "min": passed[0], "max": passed[-1], "stdev": stdev}
    return counted | figures | ranked


def start_of(time: datetime, every: Every) -> datetime:
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "hour": time.replace(minute=0, second=0, microsecond=0),
        "day": midnight,
        "week": midnight - timedelta(days=midnight.weekday()),
        "month": midnight.replace(day=1),
        "year": midnight.replace(month=1, day=1),
    }[every]


class Depot:
    """Applies changes to the depot and to its model."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.metrics = list(metrics)
        self.model = SampleModel()
        partitions.create_for([FIRST, FIRST + DAYS * timedelta(days=1)])

    def ingest(self, metric: Metric, new: Mapping[datetime, Value]) -> None:
        self.model.add(metric.pk, new)
        rows = [
            write.SampleRow(metric.pk, at, value.known_at, value.value, value.passed)
            for at, value in new.items()
        ]
        with transaction.atomic():
            write.write(rows)
            self._mark(metric, new)

    def correct(self, metric: Metric, time: datetime, value: float, passed: bool) -> None:
        """Change the value at *time*, if there is one."""
        samples = self.model.values.get(metric.pk, {})
        if time not in samples:
            return
        samples[time] = Value(samples[time].known_at, value, passed)
        with transaction.atomic():
            Sample.objects.filter(metric=metric, time=time).update(value=value, passed=passed)
            self._mark(metric, [time])

    def remove(self, metric: Metric, before: datetime) -> None:
        removed = self.model.within(metric.pk, FIRST, before)
        if not removed:
            return
        for time in removed:
            del self.model.values[metric.pk][time]
        with transaction.atomic():
            Sample.objects.filter(metric=metric, time__lt=before).delete()
            self._mark(metric, removed)

    def _mark(self, metric: Metric, times: Iterable[datetime]) -> None:
        mark_dirty.mark((metric.segment.series_id, time) for time in times)
