"""The contract of engines, on every kind of database."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection, connections, transaction

from monitor.core.db import partitions
from monitor.core.db.partitions import PARTITIONED
from monitor.depot.engines import engine
from monitor.depot.engines.engine import ALL_SERIES, Engine, Partition, SeriesHours
from monitor.depot.retention import expiry_sql
from monitor.depot.samples import write
from monitor.depot.samples.read import samples_of
from monitor.depot.samples.write import SampleRow
from monitor.models import DayRollup, HourRollup, Metric, RawReport, RetentionCutoff, Sample, Series
from monitor.models.retention_cutoff import DataKind
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.depot.databases import PLAIN, TIMESCALE
from tests.monitor.depot.sample_model import metrics_of
from tests.waiting import eventually

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
METRIC = 1
LONG_AGO, FAR_AHEAD = datetime(1996, 7, 1, tzinfo=UTC), datetime(2044, 2, 29, 23, 59, tzinfo=UTC)


def row(time: datetime, value: float = 1.0, metric: int = METRIC) -> SampleRow:
    return SampleRow(metric, time, time + HOUR, value, passed=True)


def store(*rows: SampleRow) -> None:
    with transaction.atomic():
        partitions.create_for({row.time for row in rows})
        write.write(rows)


def part_of(table: str, time: datetime) -> Partition:
    (partition,) = [part for part in engine().partitions(table) if part.start <= time < part.end]
    return partition


@pytest.mark.parametrize("time", [LONG_AGO, FAR_AHEAD])
def test_partitions_are_created_for_any_time(quick_engine: Engine, noon: datetime, time: datetime) -> None:
    store(row(time), row(noon))
    assert [sample.time for sample in samples_of([METRIC])] == sorted([time, noon])


def test_a_report_of_any_time_has_a_partition_in_each_table(
    quick_engine: Engine, circle: Series, noon: datetime
) -> None:
    slot = noon - 9 * 365 * DAY
    assert ingest(wire.to_json(circle_report(slot))).accepted
    assert all(part_of(table, slot).bytes for table in PARTITIONED)


def test_partitions_are_listed_oldest_first_and_do_not_overlap(quick_engine: Engine, noon: datetime) -> None:
    store(*(row(noon - days * DAY) for days in (0, 100, 40, 200)))
    parts = quick_engine.partitions("monitor_sample")
    assert len(parts) >= 4
    assert all(first.start < first.end <= second.start for first, second in pairwise(parts))


def test_a_duplicate_sample_is_refused_and_the_first_stays(quick_engine: Engine, noon: datetime) -> None:
    store(row(noon, 1.0))
    store(row(noon, 2.0), row(noon + HOUR, 3.0))
    assert [sample.value for sample in samples_of([METRIC])] == [1.0, 3.0]
    with pytest.raises(IntegrityError):
        Sample.objects.create(metric_id=METRIC, time=noon, known_at=noon, value=2.0, passed=True)


def test_dropping_a_partition_deletes_its_rows_only(depot_engine: Engine, noon: datetime) -> None:
    old = noon - 100 * DAY
    store(row(old), row(noon))
    assert depot_engine.drop(part_of("monitor_sample", old), not_needed)
    assert [sample.time for sample in samples_of([METRIC])] == [noon]
    store(row(old, 2.0))
    assert [sample.value for sample in samples_of([METRIC])] == [2.0, 1.0]


def test_a_partition_that_is_needed_at_the_last_moment_stays(depot_engine: Engine, noon: datetime) -> None:
    old = noon - 100 * DAY
    store(row(old))
    part = part_of("monitor_sample", old)

    def is_needed() -> bool:
        with session() as other:
            other.execute("SET lock_timeout = '10ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(INSERT, [METRIC, old + HOUR])
        return True

    assert not depot_engine.drop(part, is_needed)
    store(row(old + HOUR))
    assert [sample.time for sample in samples_of([METRIC])] == [old, old + HOUR]


def not_needed() -> bool:
    return False


@contextlib.contextmanager
def session() -> Iterator[psycopg.Connection]:
    """Open another session with a lock timeout."""
    parameters = connection.get_connection_params()
    wanted = {
        name: parameters[name]
        for name in ("dbname", "user", "password", "host", "port")
        if name in parameters
    }
    with psycopg.connect(**wanted) as other:
        other.execute("SET lock_timeout = '60s'")
        yield other


INSERT = "INSERT INTO monitor_sample VALUES (%s, %s, now(), 1, true)"
WAITS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query NOT LIKE '%%pg_stat_activity%%'
"""


def test_writers_of_other_partitions_do_not_wait_for_a_drop(depot_engine: Engine, noon: datetime) -> None:
    old = noon - 100 * DAY
    store(row(old), row(noon))
    part = part_of("monitor_sample", old)

    def drop() -> None:
        with contextlib.suppress(OperationalError):  # the writer keeps the table locked
            depot_engine.drop(part, not_needed)
        connections.close_all()

    with session() as writer, session() as other:
        writer.execute(INSERT, [METRIC, noon + HOUR])
        dropping = threading.Thread(target=drop)
        dropping.start()
        assert eventually(lambda: not dropping.is_alive() or _is_lock_awaited())
        writer.execute(INSERT, [METRIC, noon + 2 * HOUR])
        other.execute(INSERT, [METRIC, noon + 3 * HOUR])
        other.commit()
        writer.commit()
        dropping.join(60)
    for left in [
        partition for partition in depot_engine.partitions("monitor_sample") if partition.start == part.start
    ]:
        assert depot_engine.drop(left, not_needed)
    assert [sample.time for sample in samples_of([METRIC])] == [noon + hours * HOUR for hours in range(4)]


def _is_lock_awaited() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS)
        return bool(cursor.fetchone()[0])


def test_partitions_are_created_ahead(quick_engine: Engine, noon: datetime) -> None:
    quick_engine.prepare_ahead(noon)
    quick_engine.prepare_ahead(noon)
    later = noon + 30 * DAY
    ready = {
        table
        for table in PARTITIONED
        for part in quick_engine.partitions(table)
        if part.start <= later < part.end
    }
    assert ready == (
        set(PARTITIONED) if quick_engine.name == PLAIN else {"monitor_run"}
    )  # TimescaleDB creates chunks itself
    store(row(later))


def test_late_data_in_a_compressed_chunk_are_read_like_any_other(
    quick_engine: Engine, noon: datetime
) -> None:
    old = noon - 100 * DAY
    store(*(row(old + hours * HOUR, float(hours), metric) for hours in range(24) for metric in (1, 2)))
    quick_engine.prepare_ahead(noon)
    assert part_of("monitor_sample", old).is_compressed == (quick_engine.name == TIMESCALE)
    store(row(old + HOUR / 2, 0.5), row(old + HOUR, -1.0))  # the latter exists already
    Sample.objects.filter(metric=METRIC, time=old + 2 * HOUR).update(value=2.5)
    Sample.objects.filter(metric=METRIC, time=old + 3 * HOUR).delete()
    expected = [0.0, 0.5, 1.0, 2.5, *map(float, range(4, 24))]
    assert [sample.value for sample in samples_of([METRIC])] == expected
    quick_engine.prepare_ahead(noon)
    assert [sample.value for sample in samples_of([METRIC])] == expected
    assert len(samples_of([2])) == 24


def test_raw_reports_stay_byte_for_byte_in_compressed_chunks(
    quick_engine: Engine, circle: Series, noon: datetime
) -> None:
    body = wire.to_json(circle_report(noon))
    ingest(body)
    quick_engine.prepare_ahead(noon + 100 * DAY)
    assert RawReport.objects.get().body == body


@pytest.fixture
def metrics(depot_engine: Engine, circle: Series, noon: datetime) -> list[Metric]:
    """Two metrics of a series and one of another, with values every ten minutes for half a day from noon."""
    other = Series.objects.create(name="other", probe="circle", reporter=circle.reporter, suite=circle.suite)
    metrics = [*metrics_of(circle, 2), *metrics_of(other, 1)]
    store(*(row(noon + n * HOUR / 6, float(n), metric.pk) for metric in metrics for n in range(72)))
    return metrics


WAYS = ("series by series", "all series", "in a transaction")


def roll(way: str, metrics: list[Metric], *hours: datetime) -> None:
    dirty = [SeriesHours(series, hours) for series in sorted({metric.series.pk for metric in metrics})]
    if way == "all series":
        engine().roll_up([SeriesHours(ALL_SERIES, hours)])
    elif way == "series by series":
        for hours_of_series in dirty:
            engine().roll_up([hours_of_series])
    else:
        with transaction.atomic():
            engine().roll_up(dirty)


Rolled = list[tuple[datetime, int, float]]
MEAN_WITH_100 = 115 / 7  # of 0 to 5 and 100


def hours_of(metric: Metric) -> Rolled:
    rollups = HourRollup.objects.filter(metric=metric).order_by("bucket")
    return [(rollup.bucket, rollup.n, rollup.mean or 0.0) for rollup in rollups]


def days_of(metric: Metric) -> Rolled:
    return [
        (rollup.bucket, rollup.n, rollup.mean or 0.0) for rollup in DayRollup.objects.filter(metric=metric)
    ]


@pytest.mark.parametrize("way", WAYS)
def test_rollups_aggregate_the_samples_in_every_way(metrics: list[Metric], noon: datetime, way: str) -> None:
    hours = [noon + n * HOUR for n in range(12)]
    roll(way, metrics, *hours)
    for metric in metrics:
        assert hours_of(metric) == [(hour, 6, 6 * n + 2.5) for n, hour in enumerate(hours)]
        assert days_of(metric) == [(noon - noon.hour * HOUR, 72, 35.5)]


@pytest.mark.parametrize("way", WAYS[1:])
def test_rollups_follow_inserted_and_deleted_samples(metrics: list[Metric], noon: datetime, way: str) -> None:
    hours = [noon + n * HOUR for n in range(12)]
    roll(way, metrics, *hours)
    first = metrics[0]
    store(row(noon + HOUR / 12, 100.0, first.pk))
    Sample.objects.filter(metric=first, time__gte=noon + HOUR, time__lt=noon + 2 * HOUR).delete()
    roll(way, metrics, noon, noon + HOUR)
    assert hours_of(first)[:2] == [(noon, 7, MEAN_WITH_100), (noon + 2 * HOUR, 6, 14.5)]
    assert days_of(first) == [(noon - noon.hour * HOUR, 67, 2605 / 67)]
    assert hours_of(metrics[1])[:2] == [(noon, 6, 2.5), (noon + HOUR, 6, 8.5)]


@pytest.mark.parametrize("way", WAYS[1:])
def test_rollups_of_expired_samples_stay_when_other_series_are_rolled_up(
    metrics: list[Metric], noon: datetime, way: str
) -> None:
    roll(way, metrics, *(noon + n * HOUR for n in range(12)))
    first, removed = metrics[0], metrics[2]
    before = hours_of(removed), days_of(removed)
    end = noon - noon.hour * HOUR + DAY
    RetentionCutoff.objects.create(
        series=removed.series, kind=DataKind.SAMPLES, kept_from=end, gone_before=end
    )
    Sample.objects.filter(metric=removed).delete()
    store(row(noon + HOUR / 12, 100.0, first.pk))
    roll(way, metrics, noon)
    assert (hours_of(removed), days_of(removed)) == before
    assert hours_of(first)[0] == (noon, 7, MEAN_WITH_100)


def limit_decompression(rows: int) -> None:
    """Let the transaction fail if it decompresses more rows."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL timescaledb.max_tuples_decompressed_per_dml_transaction = {rows}")


def test_only_changed_rows_are_decompressed(metrics: list[Metric], noon: datetime) -> None:
    roll("all series", metrics, *(noon + n * HOUR for n in range(12)))
    engine().prepare_ahead(noon + 60 * DAY)
    compressed, before = metrics[2], [(hours_of(metric), days_of(metric)) for metric in metrics]
    with transaction.atomic():
        limit_decompression(72)
        assert expiry_sql.delete(DataKind.SAMPLES, [compressed.series.pk], noon, noon + HOUR) == 6
    with transaction.atomic():
        limit_decompression(12 + 1)
        roll("in a transaction", [compressed], noon)
    assert [(hours_of(metric), days_of(metric)) for metric in metrics[:2]] == before[:2]
    assert hours_of(compressed) == before[2][0][1:]
    assert days_of(compressed) == [(noon - noon.hour * HOUR, 66, 38.5)]


FILL = """
INSERT INTO monitor_sample SELECT metric, time, time, 1, true
FROM generate_series(1, 145) AS metric, generate_series(%s, %s, interval '1 hour') AS time
"""


def test_any_number_of_compressed_rows_may_change(quick_engine: Engine, noon: datetime) -> None:
    first = datetime(2025, 6, 11, tzinfo=UTC)  # the start of a chunk
    partitions.create_for([first, first + 30 * DAY])
    with connection.cursor() as cursor:
        cursor.execute(FILL, [first, first + 30 * DAY - HOUR])
    quick_engine.prepare_ahead(noon)
    assert Sample.objects.filter(time=first).update(value=2.0) == 145


def test_dropped_rollups_are_the_same_after_they_are_computed_again(
    metrics: list[Metric], noon: datetime
) -> None:
    hours = [noon + n * HOUR for n in range(12)]
    roll("all series", metrics, *hours)
    before = [(hours_of(metric), days_of(metric)) for metric in metrics]
    part = part_of("monitor_sample", noon)
    engine().drop_rollups(part.start, part.end)
    roll("all series", metrics, *hours)
    assert [(hours_of(metric), days_of(metric)) for metric in metrics] == before


def test_rollups_that_are_being_read_are_not_dropped(metrics: list[Metric], noon: datetime) -> None:
    roll("all series", metrics, noon)
    part = part_of("monitor_sample", noon)
    with session() as other:
        counted = other.execute("SELECT count(*) FROM monitor_dayrollup").fetchone()
        engine().drop_rollups(part.start, part.end)
        assert other.execute("SELECT count(*) FROM monitor_dayrollup").fetchone() == counted == (3,)
