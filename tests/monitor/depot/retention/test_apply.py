"""What is older than its suite keeps it goes: in pieces, in nobody's way, and only after it was rolled up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from monitor.db.timestamps import micros
from monitor.depot.engines import engine
from monitor.depot.engines.engine import Part
from monitor.depot.retention.apply import apply_retention
from monitor.depot.retention.cutoffs import horizons
from monitor.depot.retention.dry_run import preview_retention
from monitor.depot.rollups import dirty_hours, mark_dirty, worker
from monitor.depot.rollups.statistics import statistics, statistics_by
from monitor.gridfile.define import SeriesDefinition, define
from monitor.ingest.service import ingest_all
from monitor.models import (
    DayRollup,
    DirtyHour,
    HourRollup,
    Metric,
    RawReport,
    RetentionCutoff,
    Run,
    Sample,
    Series,
    Suite,
)
from monitor.models.retention_cutoff import DataKind
from monitor.models.run import State
from monitor.overview.latest import latest
from reporters import report as wire
from tests.monitor.builders import circle_report

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("depot_engine")]
DAY = timedelta(days=1)
METRICS = 8  # of a passed Circle


def store(*slots: datetime, series: str = "circle") -> None:
    """Ingest a passed Circle of each of *slots*; they say how long it took by the day of their month."""
    reports = [circle_report(slot, series=series, ring_seconds=slot.day) for slot in slots]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(one) for one in reports]))


def days(rows: type[Sample] | type[HourRollup] | type[DayRollup] | type[RawReport]) -> list[int]:
    """The days of the month that *rows* are of."""
    time = {Sample: "time", RawReport: "slot"}.get(rows, "bucket")
    return sorted({moment.day for moment in rows.objects.values_list(time, flat=True)})


def keep(**days: int | None) -> None:
    Suite.objects.update(**{f"keep_{kind}_days": number for kind, number in days.items()})


@contextmanager
def elsewhere(work: Callable[[], None]) -> Iterator[None]:
    """Have *work* done by another session while the block lasts."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def month(circle: Series, noon: datetime) -> datetime:
    """A Circle a day from 1 to 20 March; the noon of the 21st."""
    store(*(noon + number * DAY for number in range(20)))
    return noon + 20 * DAY


def test_samples_and_reports_go_and_what_they_came_to_stays(month: datetime) -> None:
    keep(samples=5, reports=3)
    done = apply_retention(month)
    assert (days(Sample), days(RawReport)) == ([16, 17, 18, 19, 20], [18, 19, 20])
    rows = {DataKind.REPORTS: 17, DataKind.SAMPLES: 15 * METRICS, DataKind.HOURLY: 0, DataKind.DAILY: 0}
    assert done.rows == rows or done.dropped  # where parts are of days, some go whole
    assert done.later == ""
    assert set(range(1, 16)) <= set(days(HourRollup))
    assert set(range(1, 16)) <= set(days(DayRollup))
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    means = DayRollup.objects.filter(metric=ring).order_by("bucket").values_list("mean", flat=True)
    assert list(means) == list(range(1, 16))
    assert Run.objects.filter(state=State.PASSED).count() == 20


def test_rollups_outlive_their_samples_whatever_is_rolled_up_again(month: datetime, circle: Series) -> None:
    keep(samples=5)
    apply_retention(month)
    before = list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values())
    mark_dirty.mark([(circle.pk, slot) for slot in Run.objects.values_list("slot", flat=True)])
    worker.roll_all()
    list(worker.rebuild())
    assert list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values()) == before
    assert days(DayRollup) == list(range(1, 21))
    assert not DirtyHour.objects.exists()


def test_statistics_say_the_same_when_samples_are_gone(month: datetime) -> None:
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    start = (month - 20 * DAY).replace(hour=0)

    def told() -> list[object]:
        whole = statistics(ring, start, month).figures
        by_day = statistics_by(ring, start, month, "day")
        return [
            whole.n,
            whole.mean,
            whole.min,
            whole.max,
            [(one.start, one.n, one.mean) for one in by_day.buckets],
        ]

    before = told()
    keep(samples=5)
    apply_retention(month)
    assert told() == before
    dirty_hours.mark_every(start, month)  # as somebody does who has all rollups made anew
    assert told() == before


def test_rollups_go_in_their_own_time(month: datetime) -> None:
    keep(samples=3, hourly=5, daily=10)
    apply_retention(month)
    worker.roll_all()
    assert days(Sample) == [18, 19, 20]
    # Of so few samples a day there need not be hours, but where they are gone.
    assert set(days(HourRollup)) - {18, 19, 20} == {16, 17}
    assert days(DayRollup) == list(range(11, 21))


def test_what_is_kept_for_ever_stays(month: datetime) -> None:
    assert apply_retention(month).rows == dict.fromkeys(DataKind, 0)
    assert days(Sample) == days(RawReport) == list(range(1, 21))
    assert not RetentionCutoff.objects.exists()


def test_it_can_be_stopped_after_every_piece_and_goes_on(month: datetime) -> None:
    keep(samples=5, reports=3)
    pieces = 0
    while apply_retention(month, within_seconds=0).later:
        pieces += 1
        left = set(days(Sample))
        assert set(range(1, 21)) - left <= set(days(DayRollup))
    assert pieces > 2
    assert (days(Sample), days(RawReport)) == ([16, 17, 18, 19, 20], [18, 19, 20])


def test_each_series_keeps_what_its_suite_says(month: datetime, circle: Series) -> None:
    keep(samples=5)
    other = Suite.objects.create(name="other")
    Series.objects.filter(pk=circle.pk).update(suite=other)
    apply_retention(month)
    assert days(Sample) == list(range(1, 21))


def test_a_horizon_never_goes_back(month: datetime) -> None:
    keep(samples=5)
    apply_retention(month)
    keep(samples=30)
    apply_retention(month)
    (horizon,) = RetentionCutoff.objects.all()
    assert horizon.kept_from == horizon.gone_before == (month - 5 * DAY).replace(hour=0)


def test_a_report_that_comes_after_its_day_is_gone_counts_in_the_ledger_alone(
    circle: Series, month: datetime, noon: datetime
) -> None:
    keep(samples=5, reports=3)
    apply_retention(month)
    worker.roll_all()
    rolled = list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values())
    late = noon + timedelta(hours=1)
    store(late)
    assert Run.objects.get(slot=late).state == State.PASSED
    assert not Sample.objects.filter(time=late).exists()
    assert not RawReport.objects.filter(slot=late).exists()
    assert not DirtyHour.objects.filter(hour__lt=month - 5 * DAY).exists()
    store(late)
    worker.roll_all()
    assert list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values()) == rolled


def test_what_came_last_of_a_series_is_told_anew_by_a_report_of_any_age(
    month: datetime, noon: datetime
) -> None:
    keep(samples=5, reports=3)
    apply_retention(month)
    worker.roll_all()
    store(noon + timedelta(hours=1))
    assert DirtyHour.objects.count() == 1  # not at its hour, which is final


def test_what_came_last_is_told_of_reports_that_were_too_old_at_once(month: datetime, circle: Series) -> None:
    keep(samples=5)
    apply_retention(month + 90 * DAY)
    (slot,) = latest(Series.objects.filter(pk=circle.pk), month).slot.tolist()
    assert slot == micros(month - DAY)


def test_of_what_is_recent_no_horizon_is_asked_for(circle: Series, month: datetime) -> None:
    keep(samples=1)
    apply_retention(month)
    assert not horizons([(circle.pk, month - timedelta(hours=23))], month).kept_from
    found = horizons([(circle.pk, month - timedelta(hours=25))], month)
    assert found.keep(DataKind.REPORTS, circle.pk, month - 90 * DAY)
    assert not found.keep(DataKind.SAMPLES, circle.pk, month - 2 * DAY)


def test_a_dry_run_says_what_would_go_and_takes_nothing(month: datetime) -> None:
    keep(samples=5, reports=3, hourly=10)
    found = preview_retention(month)
    told = {(one.suite, one.kind): (one.rows, one.oldest) for one in found.expired}
    first = month - 20 * DAY
    assert told == {
        ("main", DataKind.REPORTS): (17, first),
        ("main", DataKind.SAMPLES): (15 * METRICS, first),
    }
    assert all(one.bytes > 0 for one in found.expired)
    assert days(Sample) == list(range(1, 21))
    assert not RetentionCutoff.objects.exists()


def test_a_month_that_nobody_needs_is_dropped_whole(month: datetime, noon: datetime) -> None:
    february = noon - 20 * DAY
    store(february)
    keep(samples=30, reports=30)
    later = month + 40 * DAY
    expected = of(february, preview_retention(later).dropped)
    assert {part.table for part in expected} == {"monitor_sample", "monitor_rawreport"}
    done = apply_retention(later)
    assert {part.name for part in of(february, done.dropped)} == {part.name for part in expected}
    assert days(Sample) == []
    assert not of(february, engine().parts("monitor_sample"))
    assert days(DayRollup) == list(range(1, 21))


def of(time: datetime, parts: Iterable[Part]) -> list[Part]:
    """Those that have *time*: other tests leave parts of other times behind, which are empty."""
    return [part for part in parts if part.start <= time < part.end]


def command(*options: str) -> str:
    said = StringIO()
    call_command("depot", "retain", *options, stdout=said)
    return said.getvalue()


def test_the_command_foretells_what_it_does_and_says_what_parts_have(circle: Series) -> None:
    now = timezone.now()
    old = now - timedelta(days=90)
    store(old, now - timedelta(hours=1))
    assert command("--dry-run") == "Nothing is older than it is kept.\n"
    keep(samples=30)
    (part,) = of(old, engine().parts("monitor_sample"))
    span = f"monitor_sample, {part.start:%Y-%m-%d} to {part.end:%Y-%m-%d}"
    foretold = command("--dry-run")
    assert foretold.startswith(f"main: {METRICS} samples, about ")
    assert f", the oldest of {old:%Y-%m-%d}\n" in foretold
    assert f"{span}: would be dropped whole, " in foretold
    assert Sample.objects.count() == 2 * METRICS
    assert f"{span}: dropped, " in command()
    assert Sample.objects.count() == METRICS


def nobody() -> bool:
    """Nobody needs the part."""
    return False


def test_who_reads_a_month_keeps_it_from_being_dropped_but_nobody_else_from_storing(
    month: datetime, noon: datetime
) -> None:
    store(noon - 20 * DAY)
    reads, may_end = threading.Event(), threading.Event()

    def read() -> None:
        with transaction.atomic():
            Sample.objects.count()
            reads.set()
            may_end.wait(30)
        connection.close()

    def february() -> list[Part]:
        return of(noon - 20 * DAY, engine().parts("monitor_sample"))

    (part,) = february()
    with elsewhere(read):
        reads.wait(30)
        with pytest.raises(OperationalError, match="lock timeout"):
            engine().drop(part, nobody)
        store(month)
        may_end.set()
    assert engine().drop(part, nobody)
    assert not february()
    store(noon - 19 * DAY)  # there can be one again
    assert days(Sample)[-1] == 21


def test_who_is_storing_what_is_too_old_is_waited_for(month: datetime, noon: datetime) -> None:
    keep(samples=5)
    stored, may_end = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            store(noon + timedelta(hours=2))
            stored.set()
            may_end.wait(30)
        connection.close()

    with elsewhere(write):
        stored.wait(30)
        first = apply_retention(month, patience_seconds=0.1)
        may_end.set()
    assert "1 transactions are under way" in first.later
    assert days(Sample) == list(range(1, 21))
    assert not apply_retention(month).later
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    assert DayRollup.objects.get(metric=ring, bucket__day=1).n == 2


def test_what_was_to_go_with_its_part_goes_by_itself_if_somebody_needs_the_part_after_all(
    month: datetime, noon: datetime
) -> None:
    define([], [SeriesDefinition("other", "circle", {"ring": ["here", "there"]}, {"file_bytes": 1000})])
    Series.objects.filter(name="other").update(suite=Suite.objects.create(name="other"))
    store(noon - 20 * DAY)
    keep(samples=30)
    Suite.objects.filter(name="other").update(keep_samples_days=None)
    later = month + 40 * DAY
    assert apply_retention(later, within_seconds=0).later
    store(noon - 19 * DAY, series="other")
    assert not apply_retention(later).later
    left = Sample.objects.values_list("metric__segment__series__name", "time").distinct()
    assert list(left) == [("other", noon - 19 * DAY)]
    assert (noon - 20 * DAY).day in days(DayRollup)


def test_what_is_left_of_a_series_that_is_gone_is_swept(month: datetime, circle: Series) -> None:
    worker.roll_all()
    with connection.cursor() as cursor:  # as a database without constraints lets anybody do it
        cursor.execute("DELETE FROM monitor_metric WHERE name <> 'total.seconds'")
    done = apply_retention(month)
    assert done.rows[DataKind.SAMPLES] == 20 * (METRICS - 1)
    for rows in (Sample, HourRollup, DayRollup):
        assert set(rows.objects.values_list("metric__name", flat=True)) <= {"total.seconds"}
