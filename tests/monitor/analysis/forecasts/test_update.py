"""States updated step by step equal rebuilt ones, whatever inputs arrive in whatever order."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import transaction

from monitor.analysis.forecasts.refresh import refresh, refresh_all, reset
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import ForecastPredictor, ForecastState, Metric, PendingChange, Sample, Segment, Series
from tests.by_night import by_night
from tests.monitor.builders import noops

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
STEPS = 25


@pytest.fixture
def metrics(db: None, noon: datetime, tmp_path: Path) -> list[Metric]:
    """Return the totals of an application and of its two predictors."""
    totals = [_total(series, noon) for series in noops(3, tmp_path)]
    for probe in totals[1:]:
        ForecastPredictor.objects.create(metric=totals[0], series=probe.segment.series, name=probe.name)
    return totals


def _total(series: Series, noon: datetime) -> Metric:
    segment = Segment.objects.create(series=series, number=1, began_at=noon, fingerprint=series.name)
    return Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")


def changed(metric: Metric, *times: datetime) -> None:
    mark_dirty.mark({(metric.segment.series_id, time) for time in times})


class Histories:
    """Random changes of the values of some metrics."""

    def __init__(self, metrics: list[Metric], noon: datetime, draw: random.Random) -> None:
        self.metrics, self.now, self.draw = metrics, noon + 60 * HOUR, draw
        self.count = dict.fromkeys((metric.pk for metric in metrics), 0)

    def happen(self) -> None:
        """Make one random change; nothing becomes known before it is written."""
        self.now += self.draw.choice([MINUTE, HOUR, 3 * HOUR])
        what: list[Callable[[Metric], None]] = [self.many, self.late, self.again, self.otherwise, self.less]
        metric = self.draw.choice(self.metrics)
        self.draw.choices(what, weights=[12, 2, 1, 1, 1])[0](metric)

    def many(self, metric: Metric) -> None:
        times = [
            self.now - number * self.draw.choice([MINUTE, HOUR]) for number in range(self.draw.randint(1, 5))
        ]
        rows = [self._row(metric, time, self.now - self.draw.random() * MINUTE) for time in times]
        write.write(rows)
        changed(metric, *times)

    def late(self, metric: Metric) -> None:
        """Write a value that became known long ago, or, by a fast clock, becomes known in the future."""
        time = self.now - self.draw.random() * 30 * HOUR
        write.write([self._row(metric, time, time + self.draw.choice([MINUTE, HOUR, 40 * HOUR]))])
        changed(metric, time)

    def again(self, metric: Metric) -> None:
        """Mark an hour dirty in which nothing changed."""
        changed(metric, self.now - self.draw.random() * 40 * HOUR)

    def otherwise(self, metric: Metric) -> None:
        if sample := Sample.objects.filter(metric=metric).order_by("?").first():
            Sample.objects.filter(metric=metric, time=sample.time).update(value=self.draw.random() * 100)
            changed(metric, sample.time)

    def less(self, metric: Metric) -> None:
        if sample := Sample.objects.filter(metric=metric).order_by("?").first():
            Sample.objects.filter(metric=metric, time=sample.time).update(passed=False)
            changed(metric, sample.time)

    def _row(self, metric: Metric, time: datetime, known_at: datetime) -> SampleRow:
        return SampleRow(metric.pk, time, known_at, self.draw.lognormvariate(2.0, 0.5), True)


def stored_states(now: datetime) -> dict[int, tuple[bytes, bytes, int, list[float] | None]]:
    refresh_all(now)
    rows = ForecastState.objects.order_by("metric")
    assert not any(row.is_behind for row in rows)
    quantiles = {row.pk: row.forecast.quantiles if row.forecast else None for row in rows}
    return {
        row.pk: (bytes(row.state or b""), bytes(row.used or b""), row.n, quantiles[row.pk]) for row in rows
    }


def refresh_and_be_killed(now: datetime) -> None:
    """Refresh, and roll everything back."""
    with transaction.atomic():
        refresh(now, within_seconds=0.0)
        transaction.set_rollback(True)


@pytest.mark.parametrize("seed", [0, 1, *map(by_night, range(2, 6))])
def test_a_state_updated_step_by_step_equals_a_rebuilt_one_for_any_history(
    metrics: list[Metric], noon: datetime, seed: int
) -> None:
    draw = random.Random(seed)
    histories = Histories(metrics, noon, draw)
    for _ in range(STEPS):
        histories.happen()
        if draw.random() < 0.7:
            refresh(histories.now, within_seconds=draw.choice([0.0, 1.0]))
        if draw.random() < 0.2:
            refresh_and_be_killed(histories.now)
    step_by_step = stored_states(histories.now)
    reset([metric.segment.series_id for metric in metrics])
    assert stored_states(histories.now) == step_by_step
    assert not PendingChange.objects.filter(due_at=None).exists()
