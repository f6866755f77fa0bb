"""Histograms: every value in its bin, quantiles within their error, for short and long time ranges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitor.core.db import partitions
from monitor.depot.rollups import mark_dirty
from monitor.depot.rollups.histogram import MOST_BINS, histogram
from monitor.depot.rollups.statistics import statistics
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import Metric, Segment, Series
from tests.rollups import roll_all

DAY = timedelta(days=1)
THEN = datetime(2015, 12, 31, 12, tzinfo=UTC)  # before 2020 a partition is a year

pytestmark = pytest.mark.django_db


@pytest.fixture
def metric(circle: Series) -> Metric:
    """Store two years of daily values of 1, 2, ... seconds; the last run failed."""
    segment = Segment.objects.create(series=circle, number=1, fingerprint="1", began_at=THEN, probe="circle")
    metric = Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")
    measure(metric, [THEN - day * DAY for day in range(730)])
    return metric


def measure(metric: Metric, times: list[datetime]) -> None:
    partitions.create_for(times)
    write.write([SampleRow(metric.pk, time, time, 1.0 + at, at > 0) for at, time in enumerate(times)])
    mark_dirty.mark((metric.segment.series_id, time) for time in times)


def test_the_histogram_of_a_month_is_exact(metric: Metric) -> None:
    roll_all()
    result = histogram(metric, THEN - 20 * DAY, THEN + DAY, bins=4)
    assert (result.unit, result.n, result.exact, result.complete) == ("seconds", 20, True, True)
    assert result.edges == pytest.approx([2.0, 6.75, 11.5, 16.25, 21.0])
    assert result.counts == [5, 5, 5, 5]
    assert result.quantiles == {1: 2.0, 5: 2.0, 25: 6.0, 50: 11.0, 75: 16.0, 95: 20.0, 99: 21.0}


def test_the_histogram_of_years_uses_sketches(metric: Metric) -> None:
    roll_all()
    result = histogram(metric, THEN - 800 * DAY, THEN + DAY, bins=4)
    assert (result.n, sum(result.counts), result.exact) == (729, 729, False)
    assert (result.edges[0], result.edges[-1]) == (2.0, 730.0)
    assert result.counts == pytest.approx([182, 182, 182, 183], abs=8)
    assert result.quantiles[50] == pytest.approx(366, rel=0.01)
    assert result.quantiles[99] == pytest.approx(723, rel=0.01)


def test_dirty_hours_are_counted(metric: Metric) -> None:
    result = histogram(metric, THEN - 800 * DAY, THEN + DAY)
    assert (result.n, result.exact, result.complete) == (729, True, False)
    assert result.quantiles[50] == 366.0


def test_many_values_of_a_short_range_are_counted_by_sketches(metric: Metric) -> None:
    roll_all()
    result = histogram(metric, THEN - 20 * DAY, THEN + DAY, bins=4, most_read=19)
    assert (result.n, sum(result.counts), result.exact, result.complete) == (20, 20, False, True)
    assert result.quantiles[50] == pytest.approx(11.0, rel=0.01)


def test_many_values_of_dirty_hours_are_aggregated_by_the_database(metric: Metric) -> None:
    result = histogram(metric, THEN - 20 * DAY, THEN + DAY, bins=4, most_read=19)
    assert (result.n, sum(result.counts), result.exact, result.complete) == (20, 20, False, False)
    assert result.quantiles[50] == pytest.approx(11.0, rel=0.01)


@pytest.mark.parametrize("rolled", [False, True])
def test_a_large_sketch_is_read_as_counts_of_its_keys(metric: Metric, rolled: bool) -> None:
    seconds = timedelta(seconds=20)
    measure(metric, [THEN + DAY + number * seconds for number in range(3000)])
    if rolled:
        roll_all()
    result = histogram(metric, THEN - 800 * DAY, THEN + 3 * DAY, bins=4)
    assert (result.n, sum(result.counts), result.edges[-1]) == (729 + 2999, 729 + 2999, 3000.0)
    assert result.quantiles[75] == pytest.approx(2068, rel=0.02)
    figures = statistics(metric, THEN - 800 * DAY, THEN + 3 * DAY).figures
    assert (figures.n, figures.passed, figures.max) == (730 + 3000, 729 + 2999, 3000.0)
    assert figures.p50 == pytest.approx(1136, rel=0.02)


def test_equal_values_have_one_bin(metric: Metric) -> None:
    result = histogram(metric, THEN - DAY, THEN, bins=10)
    assert (result.edges, result.counts) == ([2.0, 2.0], [1])


def test_without_values_there_are_no_bins(metric: Metric) -> None:
    result = histogram(metric, THEN + DAY, THEN + 2 * DAY)
    assert (result.n, result.edges, result.counts, result.quantiles) == (0, [], [], {})
    assert result.age_seconds(THEN) is None


@pytest.mark.parametrize("bins", [0, -1, MOST_BINS + 1])
def test_the_number_of_bins_is_limited(metric: Metric, bins: int) -> None:
    with pytest.raises(ValueError, match=f"expected 1 to 1000 bins, got {bins}"):
        histogram(metric, THEN - DAY, THEN, bins=bins)
