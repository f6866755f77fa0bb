"""The rollup worker rolls up dirty hours that are over, one process at a time; queries see no difference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from django.db import connection

from monitor.core.db import partitions
from monitor.core.db.advisory_locks import AdvisoryLock
from monitor.depot.rollups import dirty_hours, mark_dirty
from monitor.depot.rollups.combine import SummaryStatistics
from monitor.depot.rollups.statistics import statistics, statistics_by
from monitor.depot.rollups.worker import (
    RebuildProgress,
    RollupInProgress,
    exclusive,
    gather,
    rebuild,
    roll,
)
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import DayRollup, DirtyHour, HourRollup, Metric, Segment, Series
from tests.rollups import roll_all

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

pytestmark = pytest.mark.django_db


@pytest.fixture
def metric(circle: Series, noon: datetime) -> Metric:
    segment = Segment.objects.create(series=circle, number=1, fingerprint="1", began_at=noon, probe="circle")
    return Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")


def measure(metric: Metric, times: list[datetime], value: float = 4.0) -> None:
    partitions.create_for(times)
    write.write([SampleRow(metric.pk, time, time + MINUTE, value, True) for time in times])
    mark_dirty.mark((metric.segment.series_id, time) for time in times)


@contextmanager
def another_process_rolls_up() -> Iterator[None]:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.ROLLUP])
            yield
            cursor.execute("SELECT pg_advisory_unlock(%s)", [AdvisoryLock.ROLLUP])
    finally:
        other.close()


def count_dirty_hours(**conditions: object) -> int:
    return DirtyHour.objects.filter(**conditions).count()


def test_an_hour_is_rolled_up_when_it_is_over(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon, noon + HOUR])
    roll(noon + HOUR + MINUTE)
    assert DayRollup.objects.get().n == 2  # of the day so far
    assert list(DirtyHour.objects.values_list("hour", flat=True)) == [noon + HOUR]
    roll(noon + 2 * HOUR)
    assert not DirtyHour.objects.exists()


def test_dirty_rows_of_the_current_hour_are_merged(metric: Metric, noon: datetime) -> None:
    for minute in range(5):
        measure(metric, [noon + minute * MINUTE])
    assert count_dirty_hours() == 5
    roll(noon + 6 * MINUTE)
    assert (count_dirty_hours(), count_dirty_hours(gathered=True)) == (1, 1)
    measure(metric, [noon + 7 * MINUTE])
    roll(noon + 8 * MINUTE)
    assert (count_dirty_hours(), count_dirty_hours(gathered=True)) == (1, 1)
    assert not DayRollup.objects.exists()


def test_one_process_rolls_up_at_a_time(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    with another_process_rolls_up():
        assert not roll(noon + DAY)
        assert not DayRollup.objects.exists()
    roll(noon + DAY)
    assert DayRollup.objects.exists()


def test_a_call_ends_after_its_time_limit_and_the_next_continues(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - day * DAY for day in range(40)])
    assert roll(noon + DAY, within_seconds=0.0)
    assert 0 < DayRollup.objects.count() < 40
    while roll(noon + DAY, within_seconds=0.0):
        pass
    assert DayRollup.objects.count() == 40


def test_late_data_are_rolled_up_by_the_next_call(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    roll_all()
    measure(metric, [noon + MINUTE], value=6.0)
    late = statistics(metric, noon - DAY, noon + DAY)
    assert (late.figures.n, late.figures.mean, late.complete) == (2, 5.0, False)
    roll_all()
    after = statistics(metric, noon - DAY, noon + DAY)
    assert (after.figures.n, after.figures.mean, after.complete) == (2, 5.0, True)


def test_a_change_while_its_hour_is_rolled_up_keeps_the_hour_dirty(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    gather()
    batch = dirty_hours.oldest_of_single_series(before=noon + HOUR, at_most=10)
    measure(metric, [noon + MINUTE])
    with another_process_rolls_up():
        gather()
    dirty_hours.delete(batch)
    assert (len(batch.ids), count_dirty_hours(gathered=True)) == (1, 1)


def test_only_days_with_many_samples_have_hourly_rollups(metric: Metric, noon: datetime) -> None:
    day = noon - timedelta(hours=12)
    measure(metric, [day + hour * HOUR for hour in range(24)])
    roll_all()
    assert not HourRollup.objects.exists()
    measure(metric, [day + hour * HOUR + MINUTE for hour in range(24)])
    measure(metric, [day + 2 * MINUTE])
    roll_all()
    assert list(HourRollup.objects.values_list("n", flat=True)) == [3] + 23 * [2]
    assert [bucket.n for bucket in statistics_by(metric, day, day + DAY, "hour").buckets] == [3] + 23 * [2]


def test_a_rebuild_corrects_wrong_rollups(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - day * DAY for day in range(3)])
    roll_all()
    DayRollup.objects.update(mean=-1.0)
    assert statistics(metric, noon - 9 * DAY, noon + DAY).figures.mean != 4.0
    steps = list(rebuild())
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1] == RebuildProgress(steps[0].hours, steps[0].hours)
    assert statistics(metric, noon - 9 * DAY, noon + DAY).figures.mean == 4.0


def test_waiting_for_another_rollup_process_ends_with_the_callers_patience() -> None:
    with another_process_rolls_up(), pytest.raises(RollupInProgress), exclusive(patience_seconds=0.01):
        pass
    with exclusive(patience_seconds=0.01):
        pass


def test_no_hour_is_dirty_after_a_rebuild(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - day * DAY for day in range(3)])
    list(rebuild())
    assert not DirtyHour.objects.exists()
    assert DayRollup.objects.count() == 3


def test_queries_read_samples_during_a_rebuild(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    roll_all()
    DayRollup.objects.update(mean=-1.0)
    next(rebuild(noon - DAY, noon + DAY))
    result = statistics(metric, noon - 9 * DAY, noon + 9 * DAY)
    assert (result.figures.mean, result.complete) == (4.0, False)


def test_the_worker_finishes_a_rebuild_that_was_killed(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    roll_all()
    DayRollup.objects.update(mean=-1.0)
    next(rebuild(noon - DAY, noon + DAY))
    while roll(noon + 2 * DAY):
        pass
    assert DayRollup.objects.get().mean == 4.0
    assert not DirtyHour.objects.exists()


def test_values_whose_squares_overflow_are_rolled_up(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon], value=1.7e308)
    measure(metric, [noon + HOUR], value=-1.7e308)
    measure(metric, [noon + 2 * HOUR], value=1.0)
    before = statistics(metric, noon - DAY, noon + DAY).figures
    roll_all()
    after = statistics(metric, noon - 2 * DAY, noon + 2 * DAY).figures
    assert (before.max, after.max, after.min, after.n) == (1.7e308, 1.7e308, -1.7e308, 3)
    assert before.p50 == 1.0
    assert after.p50 == pytest.approx(1.0, rel=0.0101)


def test_the_age_of_data_is_that_of_their_newest_value(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - 300 * DAY, noon - 200 * DAY])
    roll_all()
    result = statistics_by(metric, noon - 400 * DAY, noon, "month")
    assert result.newest_known_at == noon - 200 * DAY + MINUTE
    assert result.age_seconds(noon) == (200 * DAY - MINUTE).total_seconds()
    assert [bucket.start.month for bucket in result.buckets] == [5, 8]
    nothing = statistics(metric, noon - 250 * DAY, noon - 240 * DAY)
    assert (nothing.figures, nothing.age_seconds(noon), nothing.complete) == (SummaryStatistics(), None, True)
