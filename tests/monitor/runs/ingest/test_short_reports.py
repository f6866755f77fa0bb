"""Short reports of programs outside of gridcast: completed, given a slot, and stored once."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from monitor.models import ConflictCount, ConflictingReport, Metric, RawReport, Run, Sample, Segment, Series
from monitor.models.run import State
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.outside import NAME, expanded, reported_series, sender

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
URL = "/api/v1/reports"


@pytest.fixture(autouse=True)
def host(settings: LazySettings, tmp_path: Path) -> None:
    """A web host without other senders."""
    settings.VAR_DIR = tmp_path


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def hourly(db: None, now: datetime) -> Series:
    """A series with the slots of the last day."""
    return expanded(reported_series("0 * * * *"), now - timedelta(days=1), now)


def send(*reports: dict[str, Any]) -> list[ReportReceipt]:
    bodies = [json.dumps({"series": NAME, "outcome": "passed", **report}).encode() for report in reports]
    return ingest_all(bodies, senders=["home"] * len(bodies), from_outside=True)


def hour(now: datetime, ago: int = 1) -> datetime:
    """Return the slot of the hour *ago* hours before the current one."""
    return now.replace(minute=0, second=0, microsecond=0) - ago * HOUR


def test_three_fields_are_a_report_with_all_totals(db: None) -> None:
    reported_series()
    (receipt,) = send({"seconds": 12.3})
    assert (receipt.accepted, receipt.error) == (True, "")
    run = Run.objects.get()
    assert (run.pk, run.state, run.seconds) == (wire.run_id(NAME, run.slot), State.PASSED, 12.3)
    names = ["stage.run.seconds", "total.seconds", "total_core.seconds", "total_essential.seconds"]
    assert sorted(Metric.objects.values_list("name", flat=True)) == names
    assert set(Sample.objects.values_list("value", flat=True)) == {12.3}
    segment = Segment.objects.get()
    assert (segment.probe, segment.bindings) == ("reported", {"host": ["here"]})
    report = RawReport.objects.get().parsed()
    assert (report.reporter, report.outcome) == ("home", "passed")


def test_the_server_computes_the_id_of_a_whole_report_too(circle: Series, noon: datetime) -> None:
    body = json.loads(wire.to_json(circle_report(noon)))
    run = body.pop("run")
    (receipt,) = ingest_all([json.dumps(body).encode()], senders=["home"], from_outside=True)
    assert (receipt.accepted, str(receipt.run)) == (True, run)
    wrong = json.dumps({**body, "run": "698cf085-daed-5ad0-9b42-c8035a64b113"}).encode()
    (refused,) = ingest_all([wrong], senders=["home"], from_outside=True)
    assert refused.error.startswith(f"run: expected {run} for this series and slot")


def test_a_report_fills_the_slot_of_the_schedule_at_its_start(hourly: Series, now: datetime) -> None:
    slot = hour(now)
    send({"started_at": wire.rfc3339(slot + 5 * MINUTE), "seconds": 60})
    run = Run.objects.get(state=State.PASSED)
    assert (run.slot, run.trigger) == (slot, "schedule")


@pytest.mark.parametrize(("early_seconds", "hours_later"), [(59, 1), (61, 0)])
def test_a_run_that_starts_a_little_early_is_the_run_of_the_slot(
    hourly: Series, now: datetime, early_seconds: int, hours_later: int
) -> None:
    slot = hour(now)
    send({"started_at": wire.rfc3339(slot + HOUR - timedelta(seconds=early_seconds)), "seconds": 1})
    assert Run.objects.get(state=State.PASSED).slot == slot + hours_later * HOUR


def test_a_second_run_in_a_slot_is_an_additional_run_and_an_equal_report_a_duplicate(
    hourly: Series, now: datetime
) -> None:
    slot = hour(now)
    failed = {"started_at": wire.rfc3339(slot + MINUTE), "seconds": 5, "outcome": "failed"}
    by_hand = {"started_at": wire.rfc3339(slot + 9 * MINUTE), "seconds": 5}
    receipts = [*send(failed), *send(by_hand), *send(by_hand), *send(failed)]
    assert [each.duplicate for each in receipts] == [False, False, True, True]
    assert not any(each.conflict for each in receipts)
    ended = Run.objects.filter(ended_at__isnull=False).order_by("slot")
    assert [(run.slot, run.state) for run in ended] == [(slot, "failed"), (slot + 9 * MINUTE, "passed")]


def test_reports_of_one_request_take_different_slots(hourly: Series, now: datetime) -> None:
    slot = hour(now)
    starts = (wire.rfc3339(slot + minutes * MINUTE) for minutes in (1, 2, 2))
    receipts = send(*({"started_at": start, "seconds": 1} for start in starts))
    assert [receipt.duplicate for receipt in receipts] == [False, False, True]
    assert Run.objects.filter(state=State.PASSED).count() == 2


def test_a_late_report_corrects_a_missed_slot(hourly: Series, now: datetime) -> None:
    slot = hour(now, ago=3)
    Run.objects.filter(slot=slot).update(state=State.MISSED)
    send({"started_at": wire.rfc3339(slot), "ended_at": wire.rfc3339(slot + MINUTE)})
    assert Run.objects.get(slot=slot).state == State.PASSED


def test_a_failure_may_be_a_text_and_needs_no_text(db: None) -> None:
    reported_series()
    send({"seconds": 1, "outcome": "failed", "failure": "disk full"}, {"seconds": 2, "outcome": "timed_out"})
    reasons = set(Run.objects.values_list("reason", flat=True))
    assert reasons == {"run failed: disk full", "run ran out of time: reported as timed_out"}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"secconds": 1}, "secconds: a report has no such field; did you mean 'seconds'?"),
        ({"stages": [{"name": "a", "seconds": 1, "note": 1}]}, "stages[0].note: a report has no such field"),
        ({"probe": {"nam": "x"}}, "probe.nam: a report has no such field"),
        ({"outcome": "fine"}, "outcome: expected one of passed"),
        ({"outcome": ["passed"]}, "outcome: expected one of passed"),
        ({"seconds": -1}, "seconds: expected a finite number >= 0"),
        ({"seconds": 1e300}, "seconds: expected a duration that began after the year 1"),
        ({"started_at": "2026-03-01T03:00:00Z"}, "seconds: expected a number beside started_at"),
        ({"started_at": "2026-03-01T03:00:00", "seconds": 1}, "started_at: expected a time as in RFC 3339"),
        (
            {"started_at": "2026-03-01T03:00:00Z", "ended_at": "2026-03-01T02:00:00Z"},
            "ended_at: expected a time that is not before started_at",
        ),
        ({"rid": "a b"}, "rid: expected text like"),
        ({"metrics": [{"name": "m", "value": 1, "unit": "u" * 51}]}, "metrics[0].unit: expected at most 50"),
        (
            {"metrics": [{"name": "m" * 201, "value": 1, "unit": "s"}]},
            "metrics[0].name: expected at most",
        ),
        ({"stages": [{"name": "s" * 187, "seconds": 1}]}, "stages[0].name: expected at most 186"),
        ({"bindings": {"r" * 201: []}}, "bindings.'rrr"),
        ({"bindings": {"host": ["a" * 201]}}, "bindings.host[0]: expected at most 200"),
        ({"failure": {"resource": "a" * 201}}, "failure.resource: expected at most 200"),
        ({"version": 2}, "version 2 is not supported"),
        ({"reporter": "other"}, "reporter: expected 'home'"),
    ],
)
def test_an_invalid_field_is_refused_by_name(db: None, changes: dict[str, Any], error: str) -> None:
    reported_series()
    (receipt,) = send(changes)
    assert not receipt.accepted
    assert receipt.error.startswith(error)
    assert not Run.objects.exists()


END_OF_TIME = "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    "changes",
    [
        {"started_at": END_OF_TIME, "seconds": 1},
        {"started_at": END_OF_TIME, "seconds": 1, "rid": "a"},
        {"started_at": END_OF_TIME, "seconds": 1, "slot": "2026-03-01T12:00:00Z"},
        {"started_at": "9999-12-31T23:59:59.9994Z", "ended_at": END_OF_TIME},
        {"started_at": "0001-01-01T00:00:00Z", "seconds": 1},
        {"ended_at": END_OF_TIME, "seconds": 0},
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("schedule", ["", "0 * * * *"])
def test_a_time_at_the_end_of_the_calendar_refuses_its_report_alone(
    db: None, schedule: str, changes: dict[str, Any]
) -> None:
    reported_series(schedule)
    first, stored, second = send(changes, {"rid": "b", "seconds": 1}, {**changes, "outcome": "failed"})
    assert (stored.accepted, stored.error) == (True, "")
    for refused in (first, second):
        assert not refused.accepted
        assert refused.error.startswith("started_at: ")
    assert Run.objects.filter(state=State.PASSED).count() == 1


def corrected(seconds: float) -> dict[str, Any]:
    return {"sent_at": "2026-03-01T12:00:00Z", "synchronised": False, "correction_seconds": seconds}


@pytest.mark.parametrize("ahead", [-HOUR, -MINUTE, MINUTE, HOUR, timedelta(days=400)], ids=str)
def test_a_host_whose_clock_is_off_gets_the_slot_at_the_corrected_start(
    hourly: Series, now: datetime, ahead: timedelta
) -> None:
    start = hour(now) + 5 * MINUTE
    clock = corrected(-ahead.total_seconds())
    (receipt,) = send({"started_at": wire.rfc3339(start + ahead), "seconds": 60, "clock": clock})
    assert (receipt.accepted, receipt.error) == (True, "")
    run = Run.objects.get(state=State.PASSED)
    assert (run.slot, run.started_at) == (hour(now), start)


def test_a_correction_is_no_part_of_a_start_by_the_clock_of_the_server(db: None, now: datetime) -> None:
    reported_series()
    (receipt,) = send({"seconds": 60, "clock": corrected(-HOUR.total_seconds())})
    assert (receipt.accepted, receipt.error) == (True, "")
    run = Run.objects.get()
    assert run.started_at is not None
    assert abs(run.started_at - (now - MINUTE)) < MINUTE


def test_a_corrected_start_that_is_no_time_is_refused(db: None) -> None:
    reported_series()
    (receipt,) = send({"started_at": END_OF_TIME, "seconds": 1, "clock": corrected(2.0**31)})
    assert receipt.error == "clock.correction_seconds: the corrected started_at is no time"


def test_only_series_that_are_reported_from_outside_have_short_reports(circle: Series) -> None:
    (receipt,) = send({"series": "circle", "seconds": 1})
    assert receipt.error.startswith("version: it is missing; ")
    assert "only a series with 'probe: reported'" in receipt.error
    assert not Run.objects.exists()


def test_a_series_of_another_reporter_is_refused_like_an_unknown_one(db: None) -> None:
    reported_series()
    body = [json.dumps({"series": NAME, "outcome": "passed"}).encode()]
    (receipt,) = ingest_all(body, senders=["other"], from_outside=True)
    (unknown,) = ingest_all([body[0].replace(b"backup", b"nobody")], senders=["other"], from_outside=True)
    assert receipt.error.replace("backup", "nobody") == unknown.error


def test_agents_send_whole_reports(db: None) -> None:
    """The hashes of their records cover the bytes that are stored: nothing is completed."""
    reported_series()
    (receipt,) = ingest_all([b'{"series": "backup", "outcome": "passed"}'], senders=["home"])
    assert receipt.error == "version: expected an integer, but it is missing"


def test_a_conflict_is_409_and_an_equal_body_a_duplicate(hourly: Series, now: datetime) -> None:
    program = sender()
    first, other = (
        {"series": NAME, "slot": wire.rfc3339(hour(now)), "seconds": seconds, "outcome": "passed"}
        for seconds in (1, 2)
    )
    answers = [program.post(URL, body, "application/json") for body in (first, first, other, other)]
    assert [answer.status_code for answer in answers] == [200, 200, 409, 409]
    assert answers[1].json()["receipts"][0]["duplicate"]
    problem = answers[2].json()
    assert (problem["code"], problem["receipts"][0]["conflict"]) == ("conflict", True)
    assert "do not send this one again" in problem["detail"]
    count = ConflictCount.objects.get()
    assert (count.reporter, count.total) == ("home", 2)


def test_of_several_reports_each_receipt_says_what_became_of_it(hourly: Series, now: datetime) -> None:
    fields = {"series": NAME, "slot": wire.rfc3339(hour(now)), "outcome": "passed"}
    reports = [{**fields, "seconds": seconds} for seconds in (1, 2, 1)]
    answer = sender().post(URL, reports, "application/json")
    assert answer.status_code == 200
    states = [(each["accepted"], each["duplicate"], each["conflict"]) for each in answer.json()["receipts"]]
    assert states == [(True, False, False), (True, False, True), (True, True, False)]


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_reports_of_a_slot_one_wins_and_all_others_are_conflicts(now: datetime) -> None:
    """Threads with connections of their own, whose requests also share transactions."""
    expanded(reported_series("0 * * * *"), now - timedelta(days=1), now)
    program, slot = sender(), wire.rfc3339(hour(now))
    together = threading.Barrier(8)

    def report(number: int) -> int:
        try:
            together.wait(timeout=60)
            fields = {"series": NAME, "slot": slot, "seconds": number + 1, "outcome": "passed"}
            return int(program.post(URL, fields, "application/json").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(report, range(8)))
    assert sorted(statuses) == [200] + [409] * 7
    winner = statuses.index(200)
    assert RawReport.objects.get().parsed().seconds == winner + 1
    assert {json.loads(kept.body)["seconds"] for kept in ConflictingReport.objects.all()} == {
        number + 1 for number in range(8) if number != winner
    }
    assert ConflictCount.objects.get().total == 7
