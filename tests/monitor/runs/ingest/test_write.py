"""Reports are stored once and completely, few or many, whatever the depot holds already."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from monitor.depot.engines import engine
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import Metric, RawReport, Resource, Run, Sample, Segment, Series, Site, Usage
from monitor.models.run import State
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest, ingest_all
from reporters import report as wire
from reporters.usage import ResourceUsage as Used
from tests.monitor.builders import circle_report, gather_report

MINUTE = timedelta(minutes=1)
MANY = 50  # reports: enough for COPY


def reports(start: datetime, number: int = MANY) -> list[wire.Report]:
    return [circle_report(start + n * MINUTE, ring_seconds=4.0 + n) for n in range(number)]


def ingest_together(some: list[wire.Report]) -> list[ReportReceipt]:
    return ingest_all([wire.to_json(report) for report in some])


def all_samples() -> list[tuple[object, ...]]:
    columns = ("metric__name", "time", "known_at", "value", "passed")
    return list(Sample.objects.order_by("time", "metric__name").values_list(*columns))


def test_a_batch_stores_the_same_as_single_reports(circle: Series, noon: datetime) -> None:
    assert all(receipt.accepted for receipt in ingest_together(reports(noon)))
    at_once = all_samples()
    raw = list(RawReport.objects.order_by("slot").values_list("run_id", "packed"))
    Run.objects.all().delete()
    Segment.objects.all().delete()
    assert not Sample.objects.exists()
    assert not RawReport.objects.exists()
    assert all(ingest(wire.to_json(report)).accepted for report in reports(noon))
    assert all_samples() == at_once
    assert list(RawReport.objects.order_by("slot").values_list("run_id", "packed")) == raw
    assert len(at_once) == 8 * MANY


@pytest.mark.parametrize("number", [1, MANY])
def test_a_value_stored_before_stays(circle: Series, noon: datetime, number: int) -> None:
    ingest(wire.to_json(circle_report(noon - MINUTE)))
    total = Metric.objects.get(name="total.seconds")
    write.write([SampleRow(total.pk, noon, noon, 99.0, True)])
    assert all(receipt.accepted for receipt in ingest_together(reports(noon, number)))
    assert Sample.objects.get(metric=total, time=noon).value == 99.0
    assert Sample.objects.count() == 8 * (number + 1)


@pytest.mark.parametrize("number", [1, MANY])
def test_partitions_are_created_for_a_time_that_has_none(circle: Series, number: int) -> None:
    long_ago = datetime(1987, 5, 4, 12, tzinfo=UTC)
    assert all(receipt.accepted for receipt in ingest_together(reports(long_ago, number)))
    assert Sample.objects.count() == 8 * number
    assert any(part.start.year == 1987 for part in engine().partitions("monitor_sample"))


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), "is before 1970"),
        (datetime(9999, 1, 1, tzinfo=UTC), "is more than 5 minutes after now"),
    ],
)
def test_a_slot_of_a_wrong_clock_is_refused_and_creates_no_partition(
    circle: Series, noon: datetime, slot: datetime, message: str
) -> None:
    receipts = ingest_together([circle_report(slot), circle_report(noon)])
    assert [receipt.accepted for receipt in receipts] == [False, True]
    assert receipts[0].run == wire.run_id("circle", slot)
    assert receipts[0].error.startswith(f"slot: {wire.rfc3339(slot)} {message}")
    assert receipts[0].error.endswith("set the clock of the reporter and send it again")
    assert not any(part.start.year == slot.year for part in engine().partitions("monitor_sample"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"started_at": datetime(1969, 12, 31, 23, 59, tzinfo=UTC)},
            "started_at: 1969-12-31T23:59:00.000000Z is",
        ),
        (
            {"started_at": datetime(2999, 1, 1, tzinfo=UTC)},
            "started_at: 2999-01-01T00:00:00.000000Z is more",
        ),
        (
            {"seconds": 1e10},
            "seconds: a run that started at 2026-03-01T12:00:00.000000Z and took 1e+10 s has not",
        ),
        ({"seconds": 1e300}, "seconds: a run that started"),
    ],
)
def test_a_run_that_ends_in_the_future_is_refused(
    circle: Series, noon: datetime, changes: dict[str, Any], message: str
) -> None:
    receipt = ingest(wire.to_json(circle_report(noon, **changes)))
    assert not receipt.accepted
    assert receipt.error.startswith(message)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("slot_after_now", "seconds", "is_accepted"),
    [(4 * MINUTE, 30.0, True), (6 * MINUTE, 30.0, False), (-MINUTE, 300.0, True), (-MINUTE, 420.0, False)],
)
def test_a_clock_may_be_fast_by_less_than_five_minutes(
    circle: Series, slot_after_now: timedelta, seconds: float, is_accepted: bool
) -> None:
    report = circle_report(timezone.now() + slot_after_now, seconds=seconds)
    assert ingest(wire.to_json(report)).accepted == is_accepted


def test_reports_that_the_depot_cannot_hold_are_refused_and_all_others_stored(
    circle: Series, noon: datetime
) -> None:
    some = reports(noon)
    for bad in (3, 11):
        some[bad] = replace(some[bad], usage={"here": Used(2**63 - 1, 2**63 - 1, 0.0)})
    receipts = ingest_together(some)
    assert [number for number, receipt in enumerate(receipts) if not receipt.accepted] == [3, 11]
    assert all("cannot hold" in receipts[bad].error for bad in (3, 11))
    assert RawReport.objects.count() == MANY - 2
    assert Run.objects.filter(state=State.PASSED).count() == MANY - 2


def test_copied_numbers_are_exact(circle: Series, noon: datetime) -> None:
    numbers = [0.1, -1e-308, 5e-324, 1.7976931348623157e308, -0.0, 12345678.000000001]
    some = [
        replace(report, metrics=[wire.MetricValue("m", number, "ones")])
        for report, number in zip(reports(noon), numbers * MANY, strict=False)
    ]
    ingest_together(some)
    values = Sample.objects.filter(metric__name="m").order_by("time").values_list("value", flat=True)
    assert [repr(value) for value in values] == [repr(report.metrics[0].value) for report in some]


def test_copied_times_are_exact_to_the_microsecond(circle: Series, noon: datetime) -> None:
    odd = noon + timedelta(microseconds=1)
    ingest_together(
        [replace(report, started_at=report.slot + timedelta(microseconds=3)) for report in reports(odd)]
    )
    first = Sample.objects.order_by("time").first()
    assert first is not None
    assert first.time == odd
    assert first.known_at == odd + timedelta(seconds=7, microseconds=3)


def test_usage_of_several_resources_of_a_site_is_added_up(circle: Series, noon: datetime) -> None:
    Resource.objects.update(site=Site.objects.get(name="site-of-here"))
    used = {"here": Used(bytes_sent=5, cpu_seconds=1.5), "there": Used(bytes_received=7), "gone": Used(1, 1)}
    ingest(wire.to_json(circle_report(noon, bindings={"ring": ("here", "there")}, usage=used)))
    usage = Usage.objects.get()
    assert (usage.site.name, usage.bytes, usage.cpu_seconds) == ("site-of-here", 12, 1.5)


def test_usage_counts_at_the_current_site_of_a_resource(circle: Series, noon: datetime) -> None:
    used = {"here": Used(bytes_sent=5)}
    ingest(wire.to_json(circle_report(noon, bindings={"ring": ("here",)}, usage=used)))
    Resource.objects.filter(name="here").update(site=Site.objects.get(name="site-of-there"))
    ingest(wire.to_json(circle_report(noon + MINUTE, bindings={"ring": ("here",)}, usage=used)))
    sites = Usage.objects.order_by("run__slot").values_list("site__name", flat=True)
    assert list(sites) == ["site-of-here", "site-of-there"]


def test_a_series_created_again_under_its_name_starts_without_history(circle: Series, noon: datetime) -> None:
    """No cache of the process leads to the metrics of the deleted series."""
    ingest_together(reports(noon))
    suite, reporter = circle.suite, circle.reporter
    circle.delete()
    Series.objects.create(suite=suite, name="circle", probe="circle", reporter=reporter)
    assert all(receipt.accepted and not receipt.duplicate for receipt in ingest_together(reports(noon)))
    assert Metric.objects.count() == 8
    assert Sample.objects.filter(metric__in=Metric.objects.all()).count() == 8 * MANY


def test_reports_of_several_series_and_probes_are_stored_together(circle: Series, noon: datetime) -> None:
    bindings = {"sources": ["here"], "compute": ["there"], "destination": ["here"]}
    define([], [SeriesDefinition("gather", "gather", bindings)])
    numbers = random.Random(1)
    slots = [noon + number * MINUTE for number in range(MANY)]
    some = [gather_report(slot, series="gather", numbers=numbers) for slot in slots]
    assert all(receipt.accepted for receipt in ingest_together([*some, *reports(noon)]))
    assert Sample.objects.count() == (12 + 8) * MANY
    for report in (some[0], some[-1]):
        stage = report.stages[-1]
        metric = Metric.objects.get(segment__series__name="gather", name=f"stage.{stage.name}.seconds")
        assert Sample.objects.get(metric=metric, time=report.slot).value == stage.seconds


@pytest.mark.django_db(transaction=True)
def test_a_connection_stays_usable_after_a_refused_batch(circle: Series, noon: datetime) -> None:
    bad = replace(circle_report(noon), metrics=[wire.MetricValue("m", 1.0, "u" * 60)])
    assert not ingest_together([bad])[0].accepted
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (before,) = cursor.fetchone()
    assert ingest_together([circle_report(noon)])[0].accepted
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() == (before,)
