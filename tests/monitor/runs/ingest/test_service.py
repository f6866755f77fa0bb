"""Reports are stored once and completely, and get a receipt after commit."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction
from django.utils import timezone

from monitor.depot.samples.read import history, of_run
from monitor.models import Metric, RawReport, Run, Sample, Segment, Series, Usage
from monitor.models.run import State
from monitor.runs.ingest import resolve_metrics
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest, ingest_all
from monitor.runs.ledger.expand import AHEAD, expand
from monitor.runs.ledger.reap import reap
from reporters import report as wire
from reporters.usage import ResourceUsage as Used
from tests.monitor.builders import circle_report, failed_circle_report, noops
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MINUTE = timedelta(minutes=1)


def test_a_passed_run_has_stages_totals_and_metrics(circle: Series, noon: datetime) -> None:
    ingest(wire.to_json(circle_report(noon)))
    run = Run.objects.get()
    assert (run.state, run.seconds) == (State.PASSED, 7.0)
    assert {metric.name: (metric.value, metric.unit) for metric in of_run(run)} == {
        "stage.init.seconds": (1.0, "seconds"),
        "stage.transfer_ring.seconds": (4.0, "seconds"),
        "stage.compare.seconds": (1.0, "seconds"),
        "stage.cleanup.seconds": (1.0, "seconds"),
        "total.seconds": (7.0, "seconds"),
        "total_essential.seconds": (5.0, "seconds"),
        "total_core.seconds": (5.0, "seconds"),
        "ring.bytes_per_second": (500.0, "bytes_per_second"),
    }


def test_a_failed_run_has_its_cause_and_no_totals(circle: Series, noon: datetime) -> None:
    ingest(wire.to_json(failed_circle_report(noon)))
    run = Run.objects.get()
    assert (run.state, run.stage, run.failed_resource) == (State.FAILED, "transfer_ring", "there")
    assert "No space left on device" in run.reason
    assert not Metric.objects.filter(name="total.seconds").exists()
    assert not Sample.objects.filter(passed=True).exists()


def test_the_raw_report_is_stored_byte_for_byte(circle: Series, noon: datetime) -> None:
    body = wire.to_json(circle_report(noon))
    ingest(body)
    assert RawReport.objects.get().body == body


def test_delivering_twice_stores_once(circle: Series, noon: datetime) -> None:
    body = wire.to_json(circle_report(noon))
    first, second = ingest(body), ingest(body)
    assert (first.accepted, first.duplicate) == (True, False)
    assert (second.accepted, second.duplicate) == (True, True)
    assert Run.objects.count() == RawReport.objects.count() == 1


def test_a_second_report_of_a_run_changes_nothing(circle: Series, noon: datetime) -> None:
    ingest(wire.to_json(circle_report(noon)))
    ingest(wire.to_json(failed_circle_report(noon)))
    assert Run.objects.get().state == State.PASSED


@pytest.mark.django_db(transaction=True)
def test_concurrent_deliveries_of_a_report_store_it_once(circle: Series, noon: datetime) -> None:
    body = wire.to_json(circle_report(noon))

    def deliver(_: int) -> ReportReceipt:
        try:
            return ingest(body)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        receipts = list(pool.map(deliver, range(8)))
    assert all(receipt.accepted for receipt in receipts)
    assert sum(not receipt.duplicate for receipt in receipts) == 1
    assert Sample.objects.count() == 8


def test_a_late_report_corrects_a_missed_run(circle: Series, noon: datetime) -> None:
    expand(noon)
    reap(noon + 10 * MINUTE)
    slot = noon + MINUTE
    assert Run.objects.get(slot=slot).state == State.MISSED
    ingest(wire.to_json(circle_report(slot)))
    assert Run.objects.get(slot=slot).state == State.PASSED


def test_a_value_is_known_from_the_end_of_its_run_on(circle: Series, noon: datetime) -> None:
    ingest(wire.to_json(circle_report(noon)))
    total = Metric.objects.get(name="total.seconds")
    assert history(total, known_by=noon + timedelta(seconds=6.9)) == []
    assert [point.value for point in history(total, known_by=noon + timedelta(seconds=7))] == [7.0]


def test_values_that_arrive_out_of_order_are_read_in_order(circle: Series, noon: datetime) -> None:
    for number in (3, 1, 2):
        ingest(wire.to_json(circle_report(noon + number * MINUTE, ring_seconds=float(number))))
    points = history(Metric.objects.get(name="stage.transfer_ring.seconds"))
    assert [point.value for point in points] == [1.0, 2.0, 3.0]


def test_a_renamed_series_keeps_its_runs(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(name="ring")
    for number, name in ((1, "circle"), (2, "ring")):  # as it was called when the run began
        slot = noon + number * MINUTE
        assert ingest(wire.to_json(circle_report(slot, series=name))).accepted
        assert Run.objects.get(slot=slot).state == State.PASSED
    assert Run.objects.count() == AHEAD // MINUTE


def test_a_long_stage_or_resource_is_truncated_in_the_ledger_only(circle: Series, noon: datetime) -> None:
    failure = wire.Failure("s" * 150, "r" * 150, "no", exit_status=None, stderr_tail="")
    assert ingest(wire.to_json(replace(failed_circle_report(noon), failure=failure))).accepted
    run = Run.objects.get()
    assert (run.stage, run.failed_resource) == ("s" * 100, "r" * 100)
    assert RawReport.objects.get().parsed().failure == failure


def _endless(report: wire.Report) -> bytes:
    return wire.to_json(report).replace(b'"seconds":7.0', b'"seconds":1e300')


def _long_unit(report: wire.Report) -> bytes:
    return wire.to_json(replace(report, metrics=[wire.MetricValue("m", 1.0, "u" * 60)]))


def _too_many_bytes(report: wire.Report) -> bytes:
    return wire.to_json(replace(report, usage={"here": Used(2**63 - 1, 2**63 - 1, 0.0)}))


def _unknown_series(report: wire.Report) -> bytes:
    return wire.to_json(circle_report(report.slot, series="nobody-knows"))


def _newer(report: wire.Report) -> bytes:
    return json.dumps({**json.loads(wire.to_json(report)), "version": 99}).encode()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda report: b"", "JSON"),
        (lambda report: wire.to_json(report)[:-20], "JSON"),
        (lambda report: wire.to_json(report).replace(b'"seconds":7.0', b'"seconds":-1'), "seconds"),
        (_unknown_series, "nobody-knows"),
        (_newer, "version 99"),
        (_endless, "has not ended yet"),
        (_long_unit, "metrics[0].unit: expected at most 50 characters"),
        (_too_many_bytes, "cannot hold"),
    ],
)
def test_a_bad_report_is_refused_with_the_reason_and_leaves_nothing(
    circle: Series, noon: datetime, spoil: Callable[[wire.Report], bytes], message: str
) -> None:
    receipt = ingest(spoil(circle_report(noon)))
    assert not receipt.accepted
    assert message in receipt.error
    assert Run.objects.count() == 0


def test_texts_with_nul_bytes_are_accepted(circle: Series, noon: datetime) -> None:
    report = failed_circle_report(noon, message="binary \x00 noise")
    assert ingest(wire.to_json(report)).accepted
    assert "binary" in Run.objects.get().reason


def test_a_metric_named_like_a_stage_does_not_hide_it(circle: Series, noon: datetime) -> None:
    own = wire.MetricValue("stage.init.seconds", 99.0, "seconds")
    ingest(wire.to_json(replace(circle_report(noon), metrics=[own])))
    assert {m.name: m.value for m in of_run(Run.objects.get())}["stage.init.seconds"] == 1.0


def ingest_reports(*reports: wire.Report) -> list[ReportReceipt]:
    return ingest_all([wire.to_json(report) for report in reports])


def accepted(receipts: Sequence[ReportReceipt]) -> list[tuple[bool, ...]]:
    return [(receipt.accepted, receipt.duplicate, receipt.conflict) for receipt in receipts]


NEW, DUPLICATE, CONFLICT, REFUSED = (
    (True, False, False),
    (True, True, False),
    (True, False, True),
    (False,) * 3,
)


def test_the_first_of_two_reports_of_a_run_in_a_batch_counts(circle: Series, noon: datetime) -> None:
    first, second = circle_report(noon), failed_circle_report(noon)
    other = circle_report(noon + MINUTE)
    assert accepted(ingest_reports(first, other, second, first)) == [NEW, NEW, CONFLICT, DUPLICATE]
    assert RawReport.objects.get(run__slot=noon).body == wire.to_json(first)
    assert Run.objects.get(slot=noon).state == State.PASSED
    assert Sample.objects.count() == 16


def test_a_report_in_a_batch_gets_the_same_receipt_as_alone(circle: Series, noon: datetime) -> None:
    bodies = [
        wire.to_json(circle_report(noon)),
        wire.to_json(circle_report(noon, series="nobody-knows")),
        b"no report at all",
        _too_many_bytes(circle_report(noon + MINUTE)),
        wire.to_json(circle_report(noon + 2 * MINUTE)),
    ]
    receipts = ingest_all(bodies)
    assert accepted(receipts) == [NEW, REFUSED, REFUSED, REFUSED, NEW]
    errors = [receipt.error for receipt in receipts]
    assert "nobody-knows" in errors[1]
    assert "JSON" in errors[2]
    assert "cannot hold" in errors[3]
    assert {run.slot for run in Run.objects.all()} == {noon, noon + 2 * MINUTE}
    assert Sample.objects.count() == 16


def test_an_empty_batch_has_no_receipts(db: None) -> None:
    assert ingest_all([]) == []


def test_reports_under_the_old_and_the_new_name_of_a_series_are_stored(
    circle: Series, noon: datetime
) -> None:
    Series.objects.update(schedule="*/2 * * * *")
    expand(noon)
    listed = Run.objects.count()
    Series.objects.update(name="ring")
    two, four = noon + 2 * MINUTE, noon + 4 * MINUTE
    receipts = ingest_reports(
        circle_report(two),  # in the ledger under the old name
        circle_report(two, series="ring"),  # the same slot
        circle_report(four, series="ring"),
        circle_report(noon + MINUTE, series="ring"),  # not a slot of its schedule
    )
    assert accepted(receipts) == [NEW, CONFLICT, NEW, NEW]  # the name is a part of the report
    assert Run.objects.count() == listed + 1
    assert {run.series for run in Run.objects.filter(state=State.PASSED)} == {circle}
    assert RawReport.objects.count() == 3
    assert Segment.objects.count() == 1


def test_one_batch_may_hold_reports_with_other_bindings_and_other_usage(
    circle: Series, noon: datetime
) -> None:
    bound = {"ring": ("here",)}
    used = {"here": Used(bytes_sent=5), "removed": Used(bytes_sent=7)}
    assert all(
        receipt.accepted
        for receipt in ingest_reports(
            circle_report(noon),
            circle_report(noon + MINUTE, bindings=bound),
            circle_report(noon + 2 * MINUTE, bindings=bound, usage=used),
        )
    )
    usage = Usage.objects.order_by("run__slot", "site__name")
    assert list(usage.values_list("run__slot__minute", "site__name", "bytes")) == [
        (0, "site-of-here", 0),
        (0, "site-of-there", 0),
        (1, "site-of-here", 0),
        (2, "site-of-here", 5),
    ]
    bindings = Segment.objects.order_by("began_at").values_list("bindings", flat=True)
    assert list(bindings) == [{"ring": ["here", "there"]}, {"ring": ["here"]}]


def test_a_batch_of_skipped_runs_stores_no_values(circle: Series, noon: datetime) -> None:
    skipped = [
        circle_report(noon + number * MINUTE, outcome="skipped", reason="load: 5.2") for number in range(2)
    ]
    assert accepted(ingest_reports(*skipped)) == [NEW, NEW]
    assert {(run.state, run.started_at, run.ended_at) for run in Run.objects.all()} == {
        (State.SKIPPED, None, None)
    }
    assert not Usage.objects.exists()
    assert not Segment.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_concurrent_batches_create_each_segment_once(circle: Series, tmp_path: Path, noon: datetime) -> None:
    names = [series.name for series in noops(4, tmp_path)]
    start = threading.Barrier(2)

    def of(minute: int) -> list[wire.Report]:
        return [
            circle_report(noon + (minute + 2 * number) * MINUTE, series=name, parameters={"n": number})
            for name in names
            for number in range(3)
        ]

    def take(reports: Sequence[wire.Report]) -> list[ReportReceipt]:
        try:
            start.wait()
            return ingest_reports(*reports)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        receipts = [receipt for each in pool.map(take, [of(0), of(1)[::-1]]) for receipt in each]
    assert accepted(receipts) == [NEW] * 24
    numbers = Segment.objects.order_by("series", "number").values_list("number", flat=True)
    assert list(numbers) == [1, 2, 3] * 4
    assert {segment.metrics.count() for segment in Segment.objects.all()} == {8}
    assert Sample.objects.count() == 8 * 24


@pytest.mark.django_db(transaction=True)
def test_reports_of_a_series_deleted_meanwhile_are_refused(
    circle: Series, tmp_path: Path, noon: datetime
) -> None:
    noops(1, tmp_path)

    def take() -> list[ReportReceipt]:
        try:
            return ingest_reports(circle_report(noon), circle_report(noon, series="noop-0"))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            circle.delete()
            taking = pool.submit(take)
            assert eventually(_is_lock_awaited)  # on the lock of the deleted series
        receipts = taking.result()
    assert [(receipt.accepted, receipt.error) for receipt in receipts] == [
        (False, "there is no series 'circle'"),
        (True, ""),
    ]
    assert [run.series.name for run in Run.objects.all()] == ["noop-0"]


def _is_lock_awaited() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])


def test_the_cost_per_new_metric_does_not_grow_with_their_number(circle: Series, noon: datetime) -> None:
    def cpu_seconds(minute: int, count: int) -> float:
        metrics = [wire.MetricValue(f"of-{minute}.{number}", 1.0, "seconds") for number in range(count)]
        report = circle_report(noon + minute * MINUTE, metrics=metrics)
        began = time.thread_time()
        assert ingest_reports(report)[0].accepted
        return time.thread_time() - began

    cpu_seconds(0, 10)
    cost_of_80 = max(cpu_seconds(minute, 80) for minute in (1, 2, 3))
    assert min(cpu_seconds(minute, 800) for minute in (4, 5)) < 20 * cost_of_80


def with_metrics(noon: datetime, slot: int, names: Iterable[str]) -> bytes:
    metrics = [wire.MetricValue(name, 1.0, "count") for name in names]
    return wire.to_json(circle_report(noon + slot * MINUTE, metrics=metrics))


def test_a_report_with_too_many_metrics_or_stages_is_refused_with_the_limit(
    circle: Series, noon: datetime
) -> None:
    names = [f"n{number}" for number in range(wire.MOST_METRICS + 1)]
    assert ingest(with_metrics(noon, 0, names[1:])).accepted
    refused = ingest(with_metrics(noon, 1, names))
    assert (refused.accepted, refused.error) == (False, "metrics: expected at most 1,000, got 1,001")
    stages = [wire.StageTiming(f"s{number}", "compute", 1.0, 0.0) for number in range(wire.MOST_STAGES + 1)]
    refused = ingest(wire.to_json(circle_report(noon + MINUTE, stages=stages)))
    assert (refused.accepted, refused.error) == (False, "stages: expected at most 200, got 201")
    assert (Run.objects.count(), RawReport.objects.count()) == (1, 1)


def test_reports_with_ever_new_metrics_are_refused_at_the_limit_of_the_series(
    circle: Series, noon: datetime
) -> None:
    bodies = [with_metrics(noon, slot, [f"{slot}.{number}" for number in range(900)]) for slot in range(4)]
    usual = wire.to_json(circle_report(noon + 9 * MINUTE))
    receipts = ingest_all([*bodies, usual])
    assert [receipt.accepted for receipt in receipts] == [True, True, False, False, True]
    assert receipts[2].error == (
        "metrics: a series may have 2,000 metrics between two changes of its setup, and has 1,807;"
        " the report adds 900: 2.0, 2.1, 2.10"
    )
    assert {run.slot for run in Run.objects.all()} == {noon, noon + MINUTE, noon + 9 * MINUTE}
    assert RawReport.objects.count() == 3
    assert not Metric.objects.filter(name__startswith="2.").exists()
    again = ingest(with_metrics(noon, 10, ["0.1", "1.1"]))  # known names
    assert again.accepted


def test_reports_with_ever_new_setups_are_refused_at_the_limit_of_the_series(
    circle: Series, noon: datetime
) -> None:
    ingest(with_metrics(noon, 0, []))
    before = Metric.objects.count()
    segment = Segment.objects.create(
        **{**Segment.objects.values("series_id", "probe", "bindings", "began_at").get(), "number": 2},
        parameters={},
        fingerprint="other",
    )
    free = 10
    Metric.objects.bulk_create(
        Metric(segment=segment, name=f"n{number}", unit="count")
        for number in range(resolve_metrics.MOST_IN_SERIES - before - free)
    )
    assert ingest(with_metrics(noon, 1, [f"m{number}" for number in range(free)])).accepted
    refused = ingest(with_metrics(noon, 2, ["one more"]))
    assert refused.error == (
        "metrics: a series may have 20,000 metrics in total, and has 20,000; the report adds 1: one more"
    )


def with_clock_ahead(report: wire.Report, seconds: float) -> wire.Report:
    """Return *report* as a host writes it whose clock is ahead by *seconds*, and whose reporter knows it."""
    ahead = timedelta(seconds=seconds)
    clock = wire.Clock(report.clock.sent_at + ahead, synchronised=False, correction_seconds=-seconds)
    return replace(report, started_at=report.started_at + ahead, clock=clock)


@pytest.mark.parametrize("seconds", [3600.0, -3600.0, 1e9])
def test_times_of_a_clock_that_was_off_are_corrected(circle: Series, seconds: float) -> None:
    report = circle_report(timezone.now().replace(microsecond=0) - 10 * MINUTE)
    body = wire.to_json(with_clock_ahead(report, seconds))
    assert ingest(body).accepted
    run = Run.objects.get()
    assert (run.started_at, run.seconds) == (report.started_at, 7.0)
    assert {sample.known_at for sample in Sample.objects.all()} == {run.ended_at}
    assert RawReport.objects.get().body == body, "the report stays as it arrived"


def test_a_run_long_before_its_slot_is_refused_for_good_with_the_reason(circle: Series) -> None:
    """An agent an hour ahead has run the next hour's slot, which it runs again when it comes."""
    slot = timezone.now().replace(microsecond=0) + 55 * MINUTE
    early = replace(circle_report(slot), started_at=slot)
    clock = wire.Clock(slot, synchronised=False, correction_seconds=-3600.0)
    receipt = ingest(wire.to_json(replace(early, clock=clock)))
    assert (receipt.accepted, receipt.premature) == (False, False)
    assert "the clock of its host was ahead by 3,600 s; the slot is run at its time" in receipt.error
    assert not Run.objects.exists()


@pytest.mark.parametrize("seconds", [-3600.0, wire.MOST_CORRECTION_SECONDS])
def test_a_correction_into_the_future_is_refused_like_a_time_there(circle: Series, seconds: float) -> None:
    report = circle_report(timezone.now().replace(microsecond=0) - 10 * MINUTE)
    clock = wire.Clock(report.started_at, synchronised=True, correction_seconds=abs(seconds))
    receipt = ingest(wire.to_json(replace(report, clock=clock)))
    assert not receipt.accepted
    assert "set the clock of the reporter" in receipt.error


def test_a_correction_beyond_all_times_is_malformed(circle: Series, noon: datetime) -> None:
    clock = wire.Clock(noon, synchronised=True, correction_seconds=wire.MOST_CORRECTION_SECONDS)
    report = replace(circle_report(noon), started_at=noon.replace(year=9999), clock=clock)
    assert "clock.correction_seconds" in ingest(wire.to_json(report)).error
    for seconds in ("1e300", "NaN", '"3600"', "null", "true"):
        body = wire.to_json(report).replace(b"2147483648.0", seconds.encode())
        assert not ingest(body).accepted, seconds
