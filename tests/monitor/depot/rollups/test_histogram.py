"""Distributions: every value in its bin, quantiles as near as is said, of short stretches and long ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitor.db import partitions
from monitor.depot.rollups import mark_dirty
from monitor.depot.rollups.histogram import MOST_BINS, histogram
from monitor.depot.rollups.statistics import statistics
from monitor.depot.rollups.worker import roll_all
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import Metric, Segment, Series

DAY = timedelta(days=1)
THEN = datetime(2015, 12, 31, 12, tzinfo=UTC)  # of years that long ago each is one part

pytestmark = pytest.mark.django_db


@pytest.fixture
def metric(circle: Series) -> Metric:
    """Two years of days of 1, 2, ... seconds until then, the last of a run that did not pass."""
    segment = Segment.objects.create(series=circle, number=1, fingerprint="1", began_at=THEN, probe="circle")
    found = Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")
    measure(found, [THEN - day * DAY for day in range(730)])
    return found


def measure(metric: Metric, times: list[datetime]) -> None:
    partitions.create_for(times)
    write.write([SampleRow(metric.pk, time, time, 1.0 + at, at > 0) for at, time in enumerate(times)])
    mark_dirty.mark((metric.segment.series_id, time) for time in times)


def test_a_month_is_counted_value_by_value(metric: Metric) -> None:
    roll_all()
    found = histogram(metric, THEN - 20 * DAY, THEN + DAY, bins=4)
    assert (found.unit, found.n, found.exact, found.complete) == ("seconds", 20, True, True)
    assert found.edges == pytest.approx([2.0, 6.75, 11.5, 16.25, 21.0])
    assert found.counts == [5, 5, 5, 5]
    assert found.quantiles == {1: 2.0, 5: 2.0, 25: 6.0, 50: 11.0, 75: 16.0, 95: 20.0, 99: 21.0}


def test_years_are_counted_from_sketches(metric: Metric) -> None:
    roll_all()
    found = histogram(metric, THEN - 800 * DAY, THEN + DAY, bins=4)
    assert (found.n, sum(found.counts), found.exact) == (729, 729, False)
    assert (found.edges[0], found.edges[-1]) == (2.0, 730.0)
    assert found.counts == pytest.approx([182, 182, 182, 183], abs=8)
    assert found.quantiles[50] == pytest.approx(366, rel=0.01)
    assert found.quantiles[99] == pytest.approx(723, rel=0.01)


def test_what_is_not_rolled_up_yet_is_counted_as_well(metric: Metric) -> None:
    found = histogram(metric, THEN - 800 * DAY, THEN + DAY)
    assert (found.n, found.exact, found.complete) == (729, True, False)
    assert found.quantiles[50] == 366.0


def test_many_values_of_a_short_stretch_are_counted_from_sketches(metric: Metric) -> None:
    roll_all()
    found = histogram(metric, THEN - 20 * DAY, THEN + DAY, bins=4, most_read=19)
    assert (found.n, sum(found.counts), found.exact, found.complete) == (20, 20, False, True)
    assert found.quantiles[50] == pytest.approx(11.0, rel=0.01)


def test_many_values_that_are_not_rolled_up_yet_are_not_read_either(metric: Metric) -> None:
    found = histogram(metric, THEN - 20 * DAY, THEN + DAY, bins=4, most_read=19)
    assert (found.n, sum(found.counts), found.exact, found.complete) == (20, 20, False, False)
    assert found.quantiles[50] == pytest.approx(11.0, rel=0.01)


@pytest.mark.parametrize("rolled", [False, True])
def test_a_day_with_very_many_values_is_told_by_how_often_each_comes(metric: Metric, rolled: bool) -> None:
    seconds = timedelta(seconds=20)
    measure(metric, [THEN + DAY + number * seconds for number in range(3000)])
    if rolled:
        roll_all()
    found = histogram(metric, THEN - 800 * DAY, THEN + 3 * DAY, bins=4)
    assert (found.n, sum(found.counts), found.edges[-1]) == (729 + 2999, 729 + 2999, 3000.0)
    assert found.quantiles[75] == pytest.approx(2068, rel=0.02)
    figures = statistics(metric, THEN - 800 * DAY, THEN + 3 * DAY).figures
    assert (figures.n, figures.passed, figures.max) == (730 + 3000, 729 + 2999, 3000.0)
    assert figures.p50 == pytest.approx(1136, rel=0.02)


def test_values_that_are_all_the_same_have_one_bin(metric: Metric) -> None:
    found = histogram(metric, THEN - DAY, THEN, bins=10)
    assert (found.edges, found.counts) == ([2.0, 2.0], [1])


def test_without_values_there_are_no_bins(metric: Metric) -> None:
    found = histogram(metric, THEN + DAY, THEN + 2 * DAY)
    assert (found.n, found.edges, found.counts, found.quantiles) == (0, [], [], {})
    assert found.age_seconds(THEN) is None


@pytest.mark.parametrize("bins", [0, -1, MOST_BINS + 1])
def test_there_are_a_thousand_bins_at_most(metric: Metric, bins: int) -> None:
    with pytest.raises(ValueError, match=f"expected 1 to 1000 bins, got {bins}"):
        histogram(metric, THEN - DAY, THEN, bins=bins)
