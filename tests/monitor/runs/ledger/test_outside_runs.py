"""Runs of programs outside of gridcast: expected by the schedule, missed, lost, and corrected."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from monitor.models import (
    Alert,
    AlertRule,
    Heartbeat,
    Hold,
    MaintenanceWindow,
    ReportedStart,
    Run,
    Series,
    Site,
)
from monitor.models.hold import HoldKind, HoldMode
from monitor.models.run import State
from monitor.runs.ingest.pings import KEEP_STARTS, end_report, prune_starts, start_run
from monitor.runs.ingest.service import ingest_all
from monitor.runs.ledger import heartbeats
from monitor.runs.ledger.audit import audit
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.holds import InvalidRequest
from monitor.runs.ledger.outside_runs import GRACE
from monitor.runs.ledger.run_now import run_now
from monitor.tick import tick
from tests.monitor.outside import NAME, expanded, reported_series

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
LIMIT = timedelta(minutes=30)
OVERDUE = LIMIT + GRACE


@pytest.fixture
def series(db: None, noon: datetime) -> Series:
    """A series with slots at full hours from noon on, and half an hour for each run."""
    made = reported_series("0 * * * *", limit_seconds=LIMIT.total_seconds())
    return expanded(made, noon - MINUTE, noon - MINUTE)


def tick_at(now: datetime) -> None:
    """Tick once, as if the scheduler had ticked all the time."""
    Heartbeat.objects.update(seen_at=now - 2 * SECOND)
    tick(now)


def state(slot: datetime) -> tuple[str, str]:
    run = Run.objects.get(slot=slot)
    return run.state, run.reason


def report(slot: datetime, seconds: float = 5.0) -> None:
    body = {"series": NAME, "slot": slot.isoformat(), "started_at": slot.isoformat(), "seconds": seconds}
    (receipt,) = ingest_all([json.dumps({**body, "outcome": "passed"}).encode()], from_outside=True)
    assert receipt.accepted, receipt.error


def test_no_reporter_starts_its_runs(series: Series, noon: datetime) -> None:
    assert claim_due(noon + MINUTE) == []
    assert state(noon) == (State.EXPECTED, "")
    with pytest.raises(InvalidRequest, match="backup is reported from outside"):
        run_now(series, who="ada", now=noon)


def test_a_slot_without_a_report_is_missed_and_a_late_report_corrects_it(
    series: Series, noon: datetime
) -> None:
    tick_at(noon + OVERDUE - SECOND)
    assert state(noon)[0] == State.EXPECTED
    assert audit(noon - MINUTE, noon + OVERDUE - SECOND).overdue == []
    tick_at(noon + OVERDUE)
    assert state(noon) == (State.MISSED, "no report came within 2,400 s of its slot")
    report(noon)
    assert state(noon) == (State.PASSED, "")


def test_an_alert_opens_when_no_report_comes_and_closes_with_the_late_report(
    series: Series, noon: datetime
) -> None:
    AlertRule.objects.create(name="one", everything=True, condition="failures_in_row", threshold=1)
    tick_at(noon + OVERDUE)
    assert Alert.objects.open().get().series == series
    report(noon)
    tick_at(noon + OVERDUE + 2 * SECOND)
    assert not Alert.objects.open().exists()


def test_a_start_without_an_end_is_lost_after_the_limit(series: Series, noon: datetime) -> None:
    started_at = noon + MINUTE
    start_run(series, "", started_at)
    assert state(noon)[0] == State.RUNNING
    tick_at(started_at + LIMIT)
    assert state(noon)[0] == State.RUNNING
    tick_at(started_at + LIMIT + SECOND)
    assert state(noon) == (State.LOST, "its end was not reported within 1,800 s of its start")


@pytest.mark.parametrize(("hours", "runs"), [(2, 1), (25, 2)])
def test_a_late_end_corrects_a_lost_run_of_the_last_day(db: None, hours: int, runs: int) -> None:
    now = timezone.now()
    started_at = now - hours * HOUR
    start_run(reported_series(limit_seconds=LIMIT.total_seconds()), "", started_at)
    heartbeats.record(heartbeats.SCHEDULER, started_at)
    tick_at(started_at + OVERDUE)
    assert state(started_at)[0] == State.LOST
    (receipt,) = ingest_all([end_report(NAME, "", "", "")], from_outside=True)
    assert receipt.accepted
    assert Run.objects.count() == runs
    assert state(started_at)[0] == (State.PASSED if runs == 1 else State.LOST)


def test_an_end_after_the_next_slot_is_that_of_the_next_slot(db: None) -> None:
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    series = reported_series("0 * * * *", limit_seconds=600.0)
    expanded(series, hour - 2 * HOUR, now)
    start_run(series, "", hour - HOUR + MINUTE)
    tick_at(hour)
    (receipt,) = ingest_all([end_report(NAME, "", "", "")], from_outside=True)
    assert receipt.stored is not None
    assert receipt.stored[1] in (hour, hour + HOUR)  # the latter in the last minute of an hour
    assert state(hour - HOUR)[0] == State.LOST


def test_a_second_start_in_a_slot_replaces_the_first(series: Series, noon: datetime) -> None:
    first = start_run(series, "", noon + MINUTE)
    second = start_run(series, "", noon + 5 * MINUTE)
    assert first.run == second.run
    run = Run.objects.get(slot=noon)
    assert (run.started_at, run.lease_until) == (noon + 5 * MINUTE, noon + 5 * MINUTE + LIMIT)


def test_a_start_beside_a_run_with_an_id_is_an_additional_run(series: Series, noon: datetime) -> None:
    start_run(series, "a", noon + MINUTE)
    start_run(series, "", noon + 5 * MINUTE)
    running = Run.objects.filter(state=State.RUNNING).order_by("slot")
    assert [run.slot for run in running] == [noon, noon + 5 * MINUTE]


def test_a_slot_in_a_maintenance_window_needs_no_report(series: Series, noon: datetime) -> None:
    """The window may be over when the report would have come."""
    window = MaintenanceWindow.objects.create(
        name="disks", title="New disks", starts_at=noon - HOUR, ends_at=noon + MINUTE
    )
    window.sites.set(Site.objects.all())
    tick_at(noon + OVERDUE)
    assert state(noon) == (State.SKIPPED, "maintenance: New disks, until 2026-03-01 12:01 UTC")


def test_a_slot_in_a_hold_needs_no_report(series: Series, noon: datetime) -> None:
    hold = Hold.objects.create(
        kind=HoldKind.SERIES, name=NAME, mode=HoldMode.PAUSE, who="ada", why="tapes", began_at=noon - HOUR,
        ended_at=noon + MINUTE,
    )  # fmt: skip
    tick_at(noon + OVERDUE)
    assert state(noon) == (State.SKIPPED, hold.reason)
    tick_at(noon + HOUR + OVERDUE)
    assert state(noon + HOUR)[0] == State.MISSED


def test_after_an_outage_of_the_server_senders_have_ten_more_minutes(series: Series, noon: datetime) -> None:
    start_run(series, "", noon + MINUTE)
    back_at = noon + 3 * HOUR
    tick(back_at)
    assert state(noon)[0] == State.RUNNING
    assert state(noon + HOUR)[0] == State.EXPECTED
    tick_at(back_at + GRACE + SECOND)
    assert state(noon)[0] == State.LOST
    assert state(noon + HOUR)[0] == State.MISSED


def test_runs_from_outside_take_no_place_of_a_reporter(
    circle: Series, series: Series, noon: datetime
) -> None:
    series.reporter.capacity = 1
    series.reporter.save()
    start_run(series, "", noon)
    assert Series.objects.get(pk=circle.pk).reporter == series.reporter
    assert [claim.slot for claim in claim_due(noon + MINUTE)] == [noon + MINUTE]


def test_ids_are_forgotten_after_a_month(series: Series, noon: datetime) -> None:
    for rid in ("a", ""):
        start_run(series, rid, noon)
    assert prune_starts(noon + KEEP_STARTS) == 0
    assert prune_starts(noon + KEEP_STARTS + SECOND) == 1
    assert ReportedStart.objects.get().rid == ""


@pytest.mark.parametrize(
    ("field", "value"), [("retry_schedule", "* * * * *"), ("exclusive", "site"), ("warm_up_runs", 1)]
)
def test_what_starts_runs_of_reporters_is_refused(series: Series, field: str, value: object) -> None:
    setattr(series, field, value)
    with pytest.raises(ValidationError) as error:
        series.full_clean()
    assert list(error.value.message_dict) == [field]
