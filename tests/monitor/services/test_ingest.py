"""Reports come in: once, whole, answered after commit."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from monitor.models import Metric, RawReport, Run, Sample, Series
from monitor.models.run import State
from monitor.services.expand import AHEAD, expand
from monitor.services.history import history, of_run
from monitor.services.ingest import Receipt, ingest
from monitor.services.reap import reap
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE = timedelta(minutes=1)


def test_a_passed_run_gives_its_stages_its_totals_and_its_metrics(circle: Series, noon: datetime) -> None:
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


def test_a_failed_run_keeps_its_cause_and_gives_no_totals(circle: Series, noon: datetime) -> None:
    ingest(wire.to_json(failed_circle_report(noon)))
    run = Run.objects.get()
    assert (run.state, run.stage, run.failed_resource) == (State.FAILED, "transfer_ring", "there")
    assert "No space left on device" in run.reason
    assert not Metric.objects.filter(name="total.seconds").exists()
    assert not Sample.objects.filter(passed=True).exists()


def test_the_report_is_kept_byte_for_byte(circle: Series, noon: datetime) -> None:
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
def test_the_same_report_from_many_at_once_is_stored_once(circle: Series, noon: datetime) -> None:
    body = wire.to_json(circle_report(noon))

    def deliver(_: int) -> Receipt:
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


def test_a_value_is_known_when_its_run_had_ended_and_not_before(circle: Series, noon: datetime) -> None:
    ingest(wire.to_json(circle_report(noon)))
    total = Metric.objects.get(name="total.seconds")
    assert history(total, known_by=noon + timedelta(seconds=6.9)) == []
    assert [point.value for point in history(total, known_by=noon + timedelta(seconds=7))] == [7.0]


def test_values_that_arrive_out_of_order_are_read_in_order(circle: Series, noon: datetime) -> None:
    for number in (3, 1, 2):
        ingest(wire.to_json(circle_report(noon + number * MINUTE, ring_seconds=float(number))))
    points = history(Metric.objects.get(name="stage.transfer_ring.seconds"))
    assert [point.value for point in points] == [1.0, 2.0, 3.0]


def test_a_series_that_was_renamed_keeps_its_runs(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(name="ring")
    for number, name in ((1, "circle"), (2, "ring")):  # as it was called when the run began
        slot = noon + number * MINUTE
        assert ingest(wire.to_json(circle_report(slot, series=name))).accepted
        assert Run.objects.get(slot=slot).state == State.PASSED
    assert Run.objects.count() == AHEAD // MINUTE


def test_a_long_stage_or_resource_is_cut_in_the_ledger_only(circle: Series, noon: datetime) -> None:
    failure = wire.Failure("s" * 150, "r" * 150, "no", exit_status=None, stderr_tail="")
    assert ingest(wire.to_json(replace(failed_circle_report(noon), failure=failure))).accepted
    run = Run.objects.get()
    assert (run.stage, run.failed_resource) == ("s" * 100, "r" * 100)
    assert RawReport.objects.get().parsed().failure == failure


def _endless(report: wire.Report) -> bytes:
    return wire.to_json(report).replace(b'"seconds":7.0', b'"seconds":1e300')


def _long_unit(report: wire.Report) -> bytes:
    return wire.to_json(replace(report, metrics=[wire.MetricValue("m", 1.0, "u" * 60)]))


def _unknown_series(report: wire.Report) -> bytes:
    return wire.to_json(circle_report(report.slot, series="nobody-knows"))


def _newer(report: wire.Report) -> bytes:
    return json.dumps({**json.loads(wire.to_json(report)), "version": 99}).encode()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda report: b"", "JSON"),
        (lambda report: wire.to_json(report)[:-20], "JSON"),
        (lambda report: wire.to_json(report).replace(b'"seconds":7.0', b'"seconds":-1'), "seconds"),
        (_unknown_series, "nobody-knows"),
        (_newer, "version 99"),
        (_endless, "cannot hold"),
        (_long_unit, "cannot hold"),
    ],
)
def test_a_bad_report_is_refused_with_the_reason_and_leaves_nothing(
    circle: Series, noon: datetime, spoil: Callable[[wire.Report], bytes], said: str
) -> None:
    receipt = ingest(spoil(circle_report(noon)))
    assert not receipt.accepted
    assert said in receipt.error
    assert Run.objects.count() == 0


def test_texts_with_null_bytes_do_not_stop_a_report(circle: Series, noon: datetime) -> None:
    report = failed_circle_report(noon, message="binary \x00 noise")
    assert ingest(wire.to_json(report)).accepted
    assert "binary" in Run.objects.get().reason


def test_a_metric_named_like_a_stage_does_not_hide_it(circle: Series, noon: datetime) -> None:
    own = wire.MetricValue("stage.init.seconds", 99.0, "seconds")
    ingest(wire.to_json(replace(circle_report(noon), metrics=[own])))
    assert {m.name: m.value for m in of_run(Run.objects.get())}["stage.init.seconds"] == 1.0
