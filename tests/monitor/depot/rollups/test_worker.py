"""Rolling up: what has changed, when its hour is over, by one at a time; and what readers are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from django.db import connection

from monitor.db import partitions
from monitor.db.advisory_locks import AdvisoryLock
from monitor.depot.rollups import dirty_hours as depot
from monitor.depot.rollups import mark_dirty
from monitor.depot.rollups.combine import Figures
from monitor.depot.rollups.statistics import statistics, statistics_by
from monitor.depot.rollups.worker import (
    Progress,
    RollupInProgress,
    exclusive,
    gather,
    rebuild,
    roll,
    roll_all,
)
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import DayRollup, DirtyHour, HourRollup, Metric, Segment, Series

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
def somebody_else_rolls() -> Iterator[None]:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.ROLLUP])
            yield
            cursor.execute("SELECT pg_advisory_unlock(%s)", [AdvisoryLock.ROLLUP])
    finally:
        other.close()


def marks(**of: object) -> int:
    return DirtyHour.objects.filter(**of).count()


def test_an_hour_is_rolled_up_when_it_is_over(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon, noon + HOUR])
    roll(noon + HOUR + MINUTE)
    assert DayRollup.objects.get().n == 2  # its day, with what it has by then
    assert list(DirtyHour.objects.values_list("hour", flat=True)) == [noon + HOUR]
    roll(noon + 2 * HOUR)
    assert not DirtyHour.objects.exists()


def test_marks_of_an_hour_that_still_fills_are_put_together(metric: Metric, noon: datetime) -> None:
    for minute in range(5):
        measure(metric, [noon + minute * MINUTE])
    assert marks() == 5
    roll(noon + 6 * MINUTE)
    assert (marks(), marks(gathered=True)) == (1, 1)
    measure(metric, [noon + 7 * MINUTE])
    roll(noon + 8 * MINUTE)
    assert (marks(), marks(gathered=True)) == (1, 1)
    assert not DayRollup.objects.exists()


def test_one_rolls_up_at_a_time(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    with somebody_else_rolls():
        assert not roll(noon + DAY)
        assert not DayRollup.objects.exists()
    roll(noon + DAY)
    assert DayRollup.objects.exists()


def test_a_call_ends_when_its_time_is_over_and_the_next_goes_on(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - day * DAY for day in range(40)])
    assert roll(noon + DAY, within_seconds=0.0)
    assert 0 < DayRollup.objects.count() < 40
    while roll(noon + DAY, within_seconds=0.0):
        pass
    assert DayRollup.objects.count() == 40


def test_what_changes_after_marks_were_read_is_rolled_up_later(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    roll_all()
    measure(metric, [noon + MINUTE], value=6.0)
    late = statistics(metric, noon - DAY, noon + DAY)
    assert (late.figures.n, late.figures.mean, late.complete) == (2, 5.0, False)
    roll_all()
    after = statistics(metric, noon - DAY, noon + DAY)
    assert (after.figures.n, after.figures.mean, after.complete) == (2, 5.0, True)


def test_what_is_gathered_while_its_hour_is_rolled_up_waits_to_be_rolled_up_again(
    metric: Metric, noon: datetime
) -> None:
    measure(metric, [noon])
    gather()
    taken = depot.some(before=noon + HOUR, at_most=10)
    measure(metric, [noon + MINUTE])
    with somebody_else_rolls():
        gather()
    depot.forget(taken)
    assert (len(taken.ids), marks(gathered=True)) == (1, 1)


def test_hours_are_kept_of_days_with_many_samples_only(metric: Metric, noon: datetime) -> None:
    day = noon - timedelta(hours=12)
    measure(metric, [day + hour * HOUR for hour in range(24)])
    roll_all()
    assert not HourRollup.objects.exists()
    measure(metric, [day + hour * HOUR + MINUTE for hour in range(24)])
    measure(metric, [day + 2 * MINUTE])
    roll_all()
    assert list(HourRollup.objects.values_list("n", flat=True)) == [3] + 23 * [2]
    assert [bucket.n for bucket in statistics_by(metric, day, day + DAY, "hour").buckets] == [3] + 23 * [2]


def test_a_rebuild_makes_rollups_good_that_are_not(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - day * DAY for day in range(3)])
    roll_all()
    DayRollup.objects.update(mean=-1.0)
    assert statistics(metric, noon - 9 * DAY, noon + DAY).figures.mean != 4.0
    told = list(rebuild())
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert told[-1] == Progress(told[0].hours, told[0].hours)
    assert statistics(metric, noon - 9 * DAY, noon + DAY).figures.mean == 4.0


def test_who_rolls_up_is_waited_for_no_longer_than_somebody_has_patience() -> None:
    with somebody_else_rolls(), pytest.raises(RollupInProgress), exclusive(patience_seconds=0.01):
        pass
    with exclusive(patience_seconds=0.01):
        pass


def test_after_a_rebuild_nothing_waits_that_was_marked_before(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - day * DAY for day in range(3)])
    list(rebuild())
    assert not DirtyHour.objects.exists()
    assert DayRollup.objects.count() == 3


def test_who_reads_during_a_rebuild_reads_samples(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    roll_all()
    DayRollup.objects.update(mean=-1.0)
    next(rebuild(noon - DAY, noon + DAY))
    found = statistics(metric, noon - 9 * DAY, noon + 9 * DAY)
    assert (found.figures.mean, found.complete) == (4.0, False)


def test_a_rebuild_that_was_killed_is_ended_by_who_rolls_up(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon])
    roll_all()
    DayRollup.objects.update(mean=-1.0)
    next(rebuild(noon - DAY, noon + DAY))
    while roll(noon + 2 * DAY):
        pass
    assert DayRollup.objects.get().mean == 4.0
    assert not DirtyHour.objects.exists()


def test_numbers_whose_squares_no_number_holds_are_in_nobodys_way(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon], value=1.7e308)
    measure(metric, [noon + HOUR], value=-1.7e308)
    measure(metric, [noon + 2 * HOUR], value=1.0)
    before = statistics(metric, noon - DAY, noon + DAY).figures
    roll_all()
    after = statistics(metric, noon - 2 * DAY, noon + 2 * DAY).figures
    assert (before.max, after.max, after.min, after.n) == (1.7e308, 1.7e308, -1.7e308, 3)
    assert before.p50 == 1.0
    assert after.p50 == pytest.approx(1.0, rel=0.0101)


def test_data_are_as_old_as_their_newest_value_is_known(metric: Metric, noon: datetime) -> None:
    measure(metric, [noon - 300 * DAY, noon - 200 * DAY])
    roll_all()
    found = statistics_by(metric, noon - 400 * DAY, noon, "month")
    assert found.newest_known_at == noon - 200 * DAY + MINUTE
    assert found.age_seconds(noon) == (200 * DAY - MINUTE).total_seconds()
    assert [bucket.start.month for bucket in found.buckets] == [5, 8]
    nothing = statistics(metric, noon - 250 * DAY, noon - 240 * DAY)
    assert (nothing.figures, nothing.age_seconds(noon), nothing.complete) == (Figures(), None, True)
