"""A history of any length is downsampled to the requested points without losing extremes."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from monitor.core.db import partitions
from monitor.core.db.timestamps import micros
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.downsampled import Downsampled, downsample
from monitor.depot.samples.write import SampleRow
from monitor.models import Metric, Sample, Segment, Series
from tests.rollups import roll_all

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LATE = timedelta(seconds=90)


@pytest.fixture
def metric(circle: Series, noon: datetime) -> Metric:
    segment = Segment.objects.create(series=circle, number=1, fingerprint="1", began_at=noon)
    return Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")


def measure(
    metric: Metric, start: datetime, every: timedelta, values: list[float], passed: bool = True
) -> None:
    """Store values from *start* on, each known 90 s later, and mark their hours dirty."""
    times = [start + number * every for number in range(len(values))]
    partitions.create_for(times)
    write.write(
        [
            SampleRow(metric.pk, time, time + LATE, value, passed)
            for time, value in zip(times, values, strict=True)
        ]
    )
    mark_dirty.mark((metric.series.pk, time) for time in times)


def bumpy(count: int) -> list[float]:
    return [float(value) for value in np.random.default_rng(5).gamma(2.0, 5.0, count).round(3)]


def test_few_values_are_all_shown(metric: Metric, noon: datetime) -> None:
    measure(metric, noon, HOUR, [3.0, 1.0, 2.0])
    measure(metric, noon + MINUTE, HOUR, [9.0], passed=False)
    result = downsample(metric, start=noon, end=noon + 3 * HOUR, points=4)
    assert (result.method, result.n, result.value.tolist()) == ("raw", 3, [3.0, 1.0, 2.0])
    assert result.time.tolist() == [micros(noon + number * HOUR) for number in range(3)]
    assert (result.lowest, result.highest, result.step_seconds) == (None, None, None)


def test_the_end_of_the_range_is_excluded(metric: Metric, noon: datetime) -> None:
    measure(metric, noon, HOUR, [3.0, 1.0, 2.0])
    result = downsample(metric, start=noon + HOUR, end=noon + 2 * HOUR, points=4)
    assert result.value.tolist() == [1.0]


def test_many_values_are_downsampled_and_keep_extremes(metric: Metric, noon: datetime) -> None:
    measure(metric, noon, MINUTE, values := bumpy(500))
    result = downsample(metric, start=noon, end=noon + DAY, points=60)
    assert (result.method, result.n) == ("m4", 500)
    assert len(result.value) <= 60
    assert {min(values), max(values)} <= set(result.value.tolist())


def test_a_range_without_values_has_no_points(metric: Metric, noon: datetime) -> None:
    result = downsample(metric, start=noon, end=noon + DAY, points=60)
    assert (result.method, result.n, len(result.time)) == ("raw", 0, 0)
    assert (result.complete, result.age_seconds(noon)) == (True, None)


def test_freshness_has_the_newest_value_and_completeness(metric: Metric, noon: datetime) -> None:
    measure(metric, noon, HOUR, [3.0, 1.0])
    end = noon + 3 * HOUR
    result = downsample(metric, start=noon, end=end, points=4)
    assert (result.age_seconds(noon + 2 * HOUR), result.complete) == (3600 - 90, False)
    roll_all()
    assert downsample(metric, start=noon, end=end, points=4).complete


@pytest.fixture(params=["rolled up", "half of it", "not yet"])
def ten_days(request: pytest.FixtureRequest, metric: Metric, noon: datetime) -> list[float]:
    """Store a value every ten minutes for ten days."""
    values = bumpy(1440)
    measure(metric, noon, 10 * MINUTE, values)
    if request.param != "not yet":
        roll_all()
    if request.param == "half of it":
        mark_dirty.mark((metric.series.pk, noon + hour * HOUR) for hour in range(60, 140, 7))
    return values


def by_bin(result: Downsampled, values: list[float], noon: datetime) -> dict[int, list[float]]:
    assert result.step_seconds is not None
    step = timedelta(seconds=result.step_seconds)
    origin = result.time[0]
    inside: dict[int, list[float]] = {}
    for number, value in enumerate(values):
        start = (micros(noon + number * 10 * MINUTE) - origin) // (step // timedelta(microseconds=1))
        inside.setdefault(int(start), []).append(value)
    return inside


@pytest.mark.parametrize(("most", "method"), [(1000, "hours"), (200, "days")])
@pytest.mark.parametrize("points", [4, 7, 500])
def test_rollups_are_shown_for_too_many_samples(
    metric: Metric,
    noon: datetime,
    ten_days: list[float],
    most: int,
    method: str,
    points: int,
) -> None:
    result = downsample(metric, start=noon, end=noon + 10 * DAY, points=points, most_read=most)
    assert (result.method, result.n) == (method, 1440)
    assert len(result.time) <= points
    bins = by_bin(result, ten_days, noon)
    assert result.lowest is not None
    assert result.highest is not None
    assert result.lowest.tolist() == [min(of_bin) for of_bin in bins.values()]
    assert result.highest.tolist() == [max(of_bin) for of_bin in bins.values()]
    assert result.value.tolist() == pytest.approx([float(np.mean(of_bin)) for of_bin in bins.values()])


def test_rollups_are_shown_where_samples_were_deleted(metric: Metric, noon: datetime) -> None:
    measure(metric, noon, 10 * MINUTE, values := bumpy(600))
    roll_all()
    Sample.objects.filter(time__lt=noon + 2 * DAY).delete()
    result = downsample(metric, start=noon - DAY, end=noon + 10 * DAY, points=500)
    assert (result.method, result.n) == ("hours", 600)
    assert result.highest is not None
    assert result.highest.max() == max(values)
