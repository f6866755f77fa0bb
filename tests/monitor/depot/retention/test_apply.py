"""Retention deletes expired data in small transactions, samples only after their last rollup."""

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

from monitor.core.db.timestamps import micros
from monitor.depot.engines import engine
from monitor.depot.engines.engine import Partition
from monitor.depot.retention.apply import apply_retention
from monitor.depot.retention.cutoffs import cutoffs_of
from monitor.depot.retention.dry_run import preview_retention
from monitor.depot.rollups import dirty_hours, mark_dirty, worker
from monitor.depot.rollups.statistics import statistics, statistics_by
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
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest_all
from monitor.web.status.latest import latest
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.rollups import roll_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("depot_engine")]
DAY = timedelta(days=1)
METRICS = 8  # of a passed Circle


def store(*slots: datetime, series: str = "circle") -> None:
    """Ingest a passed Circle run for each slot; its ring takes as many seconds as the day of the month."""
    reports = [circle_report(slot, series=series, ring_seconds=slot.day) for slot in slots]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))


def days(rows: type[Sample] | type[HourRollup] | type[DayRollup] | type[RawReport]) -> list[int]:
    """Return the days of the month that have *rows*."""
    time = {Sample: "time", RawReport: "slot"}.get(rows, "bucket")
    return sorted({moment.day for moment in rows.objects.values_list(time, flat=True)})


def keep(**days: int | None) -> None:
    Suite.objects.update(**{f"keep_{kind}_days": number for kind, number in days.items()})


@contextmanager
def in_another_session(work: Callable[[], None]) -> Iterator[None]:
    """Run *work* in another session during the block."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def month(circle: Series, noon: datetime) -> datetime:
    """Store a Circle run a day from 1 to 20 March; return noon of the 21st."""
    store(*(noon + number * DAY for number in range(20)))
    return noon + 20 * DAY


def test_samples_and_reports_are_deleted_and_their_rollups_stay(month: datetime) -> None:
    keep(samples=5, reports=3)
    done = apply_retention(month)
    assert (days(Sample), days(RawReport)) == ([16, 17, 18, 19, 20], [18, 19, 20])
    rows = {DataKind.REPORTS: 17, DataKind.SAMPLES: 15 * METRICS, DataKind.HOURLY: 0, DataKind.DAILY: 0}
    assert done.rows == rows or done.dropped  # where partitions are short, some are dropped whole
    assert done.later == ""
    assert set(range(1, 16)) <= set(days(HourRollup))
    assert set(range(1, 16)) <= set(days(DayRollup))
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    means = DayRollup.objects.filter(metric=ring).order_by("bucket").values_list("mean", flat=True)
    assert list(means) == list(range(1, 16))
    assert Run.objects.filter(state=State.PASSED).count() == 20


def test_rollups_outlive_their_samples_when_their_hours_become_dirty_again(
    month: datetime, circle: Series
) -> None:
    keep(samples=5)
    apply_retention(month)
    before = list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values())
    mark_dirty.mark([(circle.pk, slot) for slot in Run.objects.values_list("slot", flat=True)])
    roll_all()
    list(worker.rebuild())
    assert list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values()) == before
    assert days(DayRollup) == list(range(1, 21))
    assert not DirtyHour.objects.exists()


def test_statistics_are_the_same_after_samples_are_deleted(month: datetime) -> None:
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    start = (month - 20 * DAY).replace(hour=0)

    def figures() -> list[object]:
        whole = statistics(ring, start, month).figures
        by_day = statistics_by(ring, start, month, "day")
        return [
            whole.n,
            whole.mean,
            whole.min,
            whole.max,
            [(bucket.start, bucket.n, bucket.mean) for bucket in by_day.buckets],
        ]

    before = figures()
    keep(samples=5)
    apply_retention(month)
    assert figures() == before
    dirty_hours.add_all_series(start, month)  # as rebuilding the rollups does
    assert figures() == before


def test_rollups_have_retention_times_of_their_own(month: datetime) -> None:
    keep(samples=3, hourly=5, daily=10)
    apply_retention(month)
    roll_all()
    assert days(Sample) == [18, 19, 20]
    # Days with few samples have hourly rollups only where their samples were deleted.
    assert set(days(HourRollup)) - {18, 19, 20} == {16, 17}
    assert days(DayRollup) == list(range(11, 21))


def test_data_without_a_retention_time_are_kept(month: datetime) -> None:
    assert apply_retention(month).rows == dict.fromkeys(DataKind, 0)
    assert days(Sample) == days(RawReport) == list(range(1, 21))
    assert not RetentionCutoff.objects.exists()


def test_retention_can_be_stopped_after_every_transaction_and_continued(month: datetime) -> None:
    keep(samples=5, reports=3)
    pieces = 0
    while apply_retention(month, within_seconds=0).later:
        pieces += 1
        left = set(days(Sample))
        assert set(range(1, 21)) - left <= set(days(DayRollup))
    assert pieces > 2
    assert (days(Sample), days(RawReport)) == ([16, 17, 18, 19, 20], [18, 19, 20])


def test_each_series_has_the_retention_of_its_suite(month: datetime, circle: Series) -> None:
    keep(samples=5)
    other = Suite.objects.create(name="other")
    Series.objects.filter(pk=circle.pk).update(suite=other)
    apply_retention(month)
    assert days(Sample) == list(range(1, 21))


def test_a_cutoff_never_moves_back(month: datetime) -> None:
    keep(samples=5)
    apply_retention(month)
    keep(samples=30)
    apply_retention(month)
    (cutoff,) = RetentionCutoff.objects.all()
    assert cutoff.kept_from == cutoff.gone_before == (month - 5 * DAY).replace(hour=0)


def test_a_report_of_a_deleted_day_changes_the_ledger_only(
    circle: Series, month: datetime, noon: datetime
) -> None:
    keep(samples=5, reports=3)
    apply_retention(month)
    roll_all()
    rolled = list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values())
    late = noon + timedelta(hours=1)
    store(late)
    assert Run.objects.get(slot=late).state == State.PASSED
    assert not Sample.objects.filter(time=late).exists()
    assert not RawReport.objects.filter(slot=late).exists()
    assert not DirtyHour.objects.filter(hour__lt=month - 5 * DAY).exists()
    store(late)
    roll_all()
    assert list(DayRollup.objects.filter(bucket__day__lte=15).order_by("pk").values()) == rolled


def test_an_expired_report_makes_the_latest_results_of_its_series_be_computed(
    month: datetime, noon: datetime
) -> None:
    keep(samples=5, reports=3)
    apply_retention(month)
    roll_all()
    store(noon + timedelta(hours=1))
    assert DirtyHour.objects.count() == 1  # the current one: the hour of the report is final


def test_latest_results_include_reports_that_expired_at_once(month: datetime, circle: Series) -> None:
    keep(samples=5)
    apply_retention(month + 90 * DAY)
    (slot,) = latest(Series.objects.filter(pk=circle.pk), month).slot.tolist()
    assert slot == micros(month - DAY)


def test_recent_slots_need_no_query_for_cutoffs(circle: Series, month: datetime) -> None:
    keep(samples=1)
    apply_retention(month)
    assert not cutoffs_of([(circle.pk, month - timedelta(hours=23))], month).kept_from
    cutoffs = cutoffs_of([(circle.pk, month - timedelta(hours=25))], month)
    assert cutoffs.is_kept(DataKind.REPORTS, circle.pk, month - 90 * DAY)
    assert not cutoffs.is_kept(DataKind.SAMPLES, circle.pk, month - 2 * DAY)


def test_a_dry_run_reports_expired_data_and_deletes_nothing(month: datetime) -> None:
    keep(samples=5, reports=3, hourly=10)
    preview = preview_retention(month)
    counts = {(data.suite, data.kind): (data.rows, data.oldest) for data in preview.expired}
    first = month - 20 * DAY
    assert counts == {
        ("main", DataKind.REPORTS): (17, first),
        ("main", DataKind.SAMPLES): (15 * METRICS, first),
    }
    assert all(data.bytes > 0 for data in preview.expired)
    assert days(Sample) == list(range(1, 21))
    assert not RetentionCutoff.objects.exists()


def test_a_partition_without_kept_rows_is_dropped(month: datetime, noon: datetime) -> None:
    february = noon - 20 * DAY
    store(february)
    keep(samples=30, reports=30)
    later = month + 40 * DAY
    expected = of(february, preview_retention(later).dropped)
    assert {part.table for part in expected} == {"monitor_sample", "monitor_rawreport"}
    done = apply_retention(later)
    assert {part.name for part in of(february, done.dropped)} == {part.name for part in expected}
    assert days(Sample) == []
    assert not of(february, engine().partitions("monitor_sample"))
    assert days(DayRollup) == list(range(1, 21))


def of(time: datetime, parts: Iterable[Partition]) -> list[Partition]:
    """Return those that hold *time*: other tests leave empty partitions of other times behind."""
    return [part for part in parts if part.start <= time < part.end]


def command(*options: str) -> str:
    output = StringIO()
    call_command("depot", "retain", *options, stdout=output)
    return output.getvalue()


def test_the_command_previews_deletions_and_names_partitions(circle: Series) -> None:
    now = timezone.now()
    old = now - timedelta(days=90)
    store(old, now - timedelta(hours=1))
    assert command("--dry-run") == "No data exceed their retention.\n"
    keep(samples=30)
    (part,) = of(old, engine().partitions("monitor_sample"))
    span = f"monitor_sample, {part.start:%Y-%m-%d} to {part.end:%Y-%m-%d}"
    preview = command("--dry-run")
    assert preview.startswith(f"main: {METRICS} samples, about ")
    assert f", the oldest of {old:%Y-%m-%d}\n" in preview
    assert f"{span}: would be dropped, " in preview
    assert Sample.objects.count() == 2 * METRICS
    assert f"{span}: dropped, " in command()
    assert Sample.objects.count() == METRICS


def not_needed() -> bool:
    return False


def test_a_reader_delays_dropping_a_partition_but_no_writer(month: datetime, noon: datetime) -> None:
    store(noon - 20 * DAY)
    reads, may_end = threading.Event(), threading.Event()

    def read() -> None:
        with transaction.atomic():
            Sample.objects.count()
            reads.set()
            may_end.wait(60)
        connection.close()

    def february() -> list[Partition]:
        return of(noon - 20 * DAY, engine().partitions("monitor_sample"))

    (part,) = february()
    with in_another_session(read):
        reads.wait(60)
        with pytest.raises(OperationalError, match="lock timeout"):
            engine().drop(part, not_needed)
        store(month)
        may_end.set()
    assert engine().drop(part, not_needed)
    assert not february()
    store(noon - 19 * DAY)  # creates the partition again
    assert days(Sample)[-1] == 21


def test_retention_waits_for_transactions_that_may_store_expired_data(
    month: datetime, noon: datetime
) -> None:
    keep(samples=5)
    stored, may_end = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            store(noon + timedelta(hours=2))
            stored.set()
            may_end.wait(60)
        connection.close()

    with in_another_session(write):
        stored.wait(60)
        first = apply_retention(month, patience_seconds=0.1)
        may_end.set()
    assert "1 transactions are in progress" in first.later
    assert days(Sample) == list(range(1, 21))
    assert not apply_retention(month).later
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    assert DayRollup.objects.get(metric=ring, bucket__day=1).n == 2


def test_expired_rows_are_deleted_if_their_partition_gets_late_data_and_stays(
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


def test_rows_of_deleted_metrics_are_deleted(month: datetime, circle: Series) -> None:
    roll_all()
    with connection.cursor() as cursor:  # samples have no foreign key
        cursor.execute("DELETE FROM monitor_metric WHERE name <> 'total.seconds'")
    done = apply_retention(month)
    assert done.rows[DataKind.SAMPLES] == 20 * (METRICS - 1)
    for rows in (Sample, HourRollup, DayRollup):
        assert set(rows.objects.values_list("metric__name", flat=True)) <= {"total.seconds"}
