"""Runs of agents: never claimed; running while listed; missed or lost when nothing is heard."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from monitor.models import Heartbeat, MaintenanceWindow, Reporter, ReporterStatus, Run, Series, Site, Usage
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import RETRY, State
from monitor.operations.gridfile.define import define
from monitor.runs.fleet.assignment import current_assignment
from monitor.runs.ledger import agent_runs, heartbeats
from monitor.runs.ledger.agent_runs import DELIVERY, GRACE, LEASE, REQUEST_AGE, SILENT_AFTER
from monitor.runs.ledger.audit import audit
from monitor.runs.ledger.claim import claim_due, claim_freed, claim_one
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.holds import InvalidRequest, RunHeld, hold
from monitor.runs.ledger.run_now import run_all, run_now
from monitor.tick import tick
from reporters.report import run_id
from tests.monitor.runs.fleet.agents import remote_reporter
from tests.monitor.runs.fleet.remote_series import RESOURCES, disk, remote_grid

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
NEVER_SEEN = "reporter ncsa has never been seen: its agent has not enrolled, or does not run"


@pytest.fixture
def reporter(db: None) -> Reporter:
    """The agent of ncsa, which runs the hourly series disk-ncsa, known since eleven."""
    made = remote_grid()
    current_assignment(made, NOON - timedelta(hours=1))
    Series.objects.update(created_at=NOON - timedelta(hours=1))
    return made


def seen(reporter: Reporter, at: datetime, **fields: object) -> None:
    defaults = {"seen_at": at, "started_at": at, "hostname": "login1", **fields}
    ReporterStatus.objects.update_or_create(reporter=reporter, defaults=defaults)


def expected(slot: datetime = NOON, series: str = "disk-ncsa", **fields: object) -> Run:
    row = Series.objects.get(name=series)
    values = {"due_at": slot, **fields}
    return Run.objects.create(id=run_id(series, slot), series=row, slot=slot, **values)


def state_of(run: Run) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.reason


def test_no_run_of_an_agent_is_claimed(reporter: Reporter) -> None:
    run = expected()
    assert claim_due(NOON) == claim_freed(NOON) == []
    assert claim_one(run, NOON) is None
    assert state_of(run) == (State.EXPECTED, "")


def test_the_ledger_expects_the_slots_of_an_agent(reporter: Reporter) -> None:
    expand(NOON)
    assert Run.objects.filter(slot=NOON, state=State.EXPECTED).count() == 1


def test_no_slot_is_expected_before_the_first_assignment(reporter: Reporter) -> None:
    reporter.assignments.all().delete()
    assert expand(NOON) == 0
    agent_runs.reap_agent_runs(NOON + GRACE)
    key = {"public_key": "x", "fingerprint": "f", "enrolled_at": NOON + 90 * MINUTE}
    reporter.keys.create(method="openssl", **key)
    current_assignment(reporter, NOON + 100 * MINUTE)
    heartbeats.record(heartbeats.SCHEDULER, NOON - MINUTE)  # it stood still meanwhile
    expand(NOON + 130 * MINUTE)
    assert Run.objects.order_by("slot").values_list("slot", flat=True)[0] == NOON + 120 * MINUTE


def test_a_series_that_moves_to_an_agent_without_an_assignment_has_no_slots(reporter: Reporter) -> None:
    expand(NOON)
    other = remote_reporter("sdsc")
    Series.objects.update(reporter=other)
    expand(NOON + MINUTE)
    assert list(Run.objects.values_list("slot", flat=True)) == [NOON]
    current_assignment(other, NOON + MINUTE)
    assert expand(NOON + 2 * MINUTE) == 24


def test_a_run_waits_for_its_report_during_its_grace_time(reporter: Reporter) -> None:
    run = expected()
    agent_runs.reap_agent_runs(NOON + GRACE - SECOND)
    assert state_of(run) == (State.EXPECTED, "")
    assert audit(NOON - MINUTE, NOON + GRACE - SECOND).overdue == []
    assert [finding.what for finding in audit(NOON - MINUTE, NOON + GRACE + MINUTE).overdue] == [
        "is still expected"
    ]
    agent_runs.reap_agent_runs(NOON + GRACE)
    assert state_of(run) == (State.MISSED, NEVER_SEEN)


def test_the_reason_of_a_missed_run_says_why_the_agent_ran_nothing(reporter: Reporter) -> None:
    late = NOON + GRACE
    states = [
        ({"at": NOON - MINUTE}, "reporter ncsa was not seen since 2026-03-01 11:59:00 UTC"),
        (
            {"at": late, "policy_status": "unreadable"},
            "reporter ncsa runs nothing: its site policy is unreadable",
        ),
        (
            {"at": late, "policy_status": "absent", "assignment_error": "x"},
            "reporter ncsa refused its assignment",
        ),
        (
            {"at": late - SILENT_AFTER, "assignment_error": ""},
            "reporter ncsa did not report it within 600 s of its time",
        ),
    ]
    for number, (state, reason) in enumerate(states):
        seen(reporter, **state)  # type: ignore[arg-type]
        run = expected(NOON - number * SECOND)
        agent_runs.reap_agent_runs(late)
        assert state_of(run) == (State.MISSED, reason)


def test_a_worker_does_not_miss_the_runs_of_an_agent(reporter: Reporter) -> None:
    run = expected(trigger="schedule")
    heartbeats.record(heartbeats.SCHEDULER, NOON + GRACE - 3 * SECOND)
    tick(NOON + GRACE - 2 * SECOND)
    assert state_of(run) == (State.EXPECTED, "")


def test_after_an_outage_of_the_server_agents_have_time_to_deliver(reporter: Reporter) -> None:
    back = NOON + timedelta(hours=5, minutes=30)
    heartbeats.record(heartbeats.SCHEDULER, NOON - MINUTE)
    running = expected(NOON - MINUTE)
    agent_runs.renew_leases(reporter, [running.pk], NOON)
    tick(back)
    due = Run.objects.filter(slot__gte=NOON, slot__lte=back)
    assert set(due.values_list("state", flat=True)) == {State.EXPECTED}
    assert state_of(running)[0] == State.RUNNING
    Heartbeat.objects.update(seen_at=back + GRACE - 2 * SECOND)  # it ticked meanwhile
    tick(back + GRACE - SECOND)
    assert set(due.values_list("state", flat=True)) == {State.EXPECTED}
    tick(back + GRACE)
    assert due.count() == 6
    assert set(due.values_list("state", "reason")) == {(State.MISSED, NEVER_SEEN)}


def test_runs_wait_while_agents_deliver_what_they_spooled_during_an_outage(reporter: Reporter) -> None:
    heartbeats.record(heartbeats.SCHEDULER, NOON)
    runs = [expected(NOON - number * timedelta(hours=1)) for number in range(3)]
    back = NOON + GRACE
    seen(reporter, back, spool_oldest_at=NOON - timedelta(hours=1))
    agent_runs.reap_agent_runs(back)
    assert [state_of(run)[0] for run in runs] == [State.EXPECTED, State.EXPECTED, State.MISSED]
    assert audit(NOON - timedelta(days=1), back + 2 * MINUTE).overdue == []
    seen(reporter, back, spool_oldest_at=NOON)
    agent_runs.reap_agent_runs(back)
    assert [state_of(run)[0] for run in runs] == [State.EXPECTED, State.MISSED, State.MISSED]
    agent_runs.reap_agent_runs(back + SILENT_AFTER)
    assert state_of(runs[0])[0] == State.MISSED, "an agent that is gone delivers nothing"


def test_no_agent_keeps_runs_waiting_for_its_backlog_for_ever(reporter: Reporter) -> None:
    heartbeats.record(heartbeats.SCHEDULER, NOON)
    run = expected()
    for now, state in (
        (NOON + DELIVERY - SECOND, State.EXPECTED),
        (NOON + DELIVERY, State.MISSED),
    ):
        seen(reporter, now, spool_oldest_at=NOON - timedelta(days=9))
        agent_runs.reap_agent_runs(now)
        assert state_of(run)[0] == state


def test_a_tick_after_a_long_outage_is_bounded_and_the_next_ticks_continue(reporter: Reporter) -> None:
    define(RESOURCES, [disk(f"disk-{number}") for number in range(3)] + [disk("home", reporter="home")])
    Series.objects.update(created_at=NOON - timedelta(days=2), expanded_until=NOON - timedelta(hours=9))
    heartbeats.record(heartbeats.SCHEDULER, NOON - timedelta(hours=9))
    a_series = 9 + 24
    assert [expand(NOON, at_most=a_series) for _ in range(6)] == [a_series] * 5 + [0]
    due = Run.objects.filter(slot__lte=NOON)
    assert set(due.values_list("series__name", "slot")) == {
        (name, NOON - number * timedelta(hours=1))
        for name in ("disk-ncsa", "disk-0", "disk-1", "disk-2", "home")
        for number in range(9)
    }
    late = due.of_agents()
    agent_runs.reap_agent_runs(NOON + GRACE - SECOND)
    assert set(late.values_list("state", flat=True)) == {State.EXPECTED}, "agents may still deliver"
    for number in range(1, 5):
        agent_runs.reap_agent_runs(NOON + GRACE, at_most=10)
        assert late.filter(state=State.MISSED).count() == min(10 * number, 4 * 9)


def test_after_an_outage_the_series_of_workers_come_first(reporter: Reporter) -> None:
    define(RESOURCES, [disk("home", reporter="home")])
    Series.objects.update(created_at=NOON - timedelta(days=2), expanded_until=NOON - timedelta(hours=9))
    expand(NOON, at_most=1)
    assert set(Run.objects.values_list("series__name", flat=True)) == {"home"}


def test_thousands_of_changed_schedules_are_expanded_in_several_ticks(reporter: Reporter) -> None:
    define(RESOURCES, [disk("home", reporter="home")])
    heartbeats.record(heartbeats.SCHEDULER, NOON - MINUTE)
    Series.objects.update(created_at=NOON - timedelta(days=2))
    assert expand(NOON, at_most=1) == 1 + 24
    assert set(Run.objects.values_list("series__name", flat=True)) == {"home"}
    heartbeats.record(heartbeats.SCHEDULER, NOON)
    assert expand(NOON + 2 * SECOND, at_most=1) == 1 + 24
    assert expand(NOON + 4 * SECOND, at_most=1) == 0
    assert not audit(NOON - timedelta(days=2), NOON + MINUTE).missing, (
        "put off since the change, not since the tick"
    )


def test_a_listed_run_is_running_until_its_lease_expires(reporter: Reporter) -> None:
    run = expected()
    assert agent_runs.renew_leases(reporter, [run.pk, uuid.uuid4()], NOON) == 1
    assert agent_runs.renew_leases(reporter, [run.pk], NOON + MINUTE) == 1
    agent_runs.reap_agent_runs(NOON + MINUTE + LEASE)
    assert state_of(run) == (State.RUNNING, "")
    assert run.started_at == NOON
    seen(reporter, NOON + MINUTE)
    agent_runs.reap_agent_runs(NOON + MINUTE + LEASE + SECOND)
    unseen = "reporter ncsa was not seen since 2026-03-01 12:01:00 UTC; it is not known whether it ended"
    assert state_of(run) == (State.LOST, unseen)
    assert Usage.objects.get().site.name == "ncsa"


def test_a_run_that_its_agent_lists_no_longer_is_lost(reporter: Reporter) -> None:
    run = expected()
    agent_runs.renew_leases(reporter, [run.pk], NOON)
    seen(reporter, NOON + LEASE)
    agent_runs.reap_agent_runs(NOON + LEASE + SECOND)
    assert state_of(run) == (
        State.LOST,
        "reporter ncsa lists it no longer; it is not known whether it ended",
    )


def test_a_run_that_a_worker_had_claimed_goes_to_the_new_reporter(reporter: Reporter) -> None:
    run = expected(state=State.CLAIMED, lease_until=NOON)
    agent_runs.reap_agent_runs(NOON + SECOND)
    assert state_of(run)[0] == State.EXPECTED


def test_a_run_of_the_future_does_not_run(reporter: Reporter) -> None:
    run = expected(NOON + timedelta(hours=1))
    assert agent_runs.renew_leases(reporter, [run.pk], NOON) == 0
    assert state_of(run) == (State.EXPECTED, "")


def test_an_ended_run_does_not_run_again(reporter: Reporter) -> None:
    run = expected(state=State.PASSED)
    assert agent_runs.renew_leases(reporter, [run.pk], NOON) == 0
    assert state_of(run)[0] == State.PASSED


def test_a_run_may_wait_for_exclusive_series(reporter: Reporter) -> None:
    Series.objects.update(exclusive="site", exclusive_wait_seconds=1800)
    run = expected()
    agent_runs.reap_agent_runs(NOON + GRACE + timedelta(seconds=1799))
    assert state_of(run)[0] == State.EXPECTED
    agent_runs.reap_agent_runs(NOON + GRACE + timedelta(seconds=1800))
    assert state_of(run)[0] == State.MISSED


def test_a_run_waits_for_the_run_of_its_leader(reporter: Reporter) -> None:
    follower = disk("after", schedule="", leader="disk-ncsa", follows="after", delay_seconds=60)
    remote_grid(disk(), follower)
    leader, run = expected(), expected(series="after")
    agent_runs.renew_leases(reporter, [leader.pk], NOON)
    later = NOON + timedelta(hours=1)
    Run.objects.filter(pk=leader.pk).update(lease_until=later + LEASE)
    agent_runs.reap_agent_runs(later)
    assert state_of(run)[0] == State.EXPECTED
    Run.objects.filter(pk=leader.pk).update(state=State.PASSED, ended_at=later)
    agent_runs.reap_agent_runs(later + GRACE + timedelta(seconds=59))
    assert state_of(run)[0] == State.EXPECTED
    agent_runs.reap_agent_runs(later + GRACE + timedelta(seconds=60))
    assert state_of(run)[0] == State.MISSED


def test_a_requested_run_goes_to_its_agent_and_expires(reporter: Reporter) -> None:
    run = run_now(Series.objects.get(), who="ada", now=NOON)
    (asked,) = agent_runs.requested_runs(reporter, NOON + MINUTE)
    assert (asked.run, asked.series, asked.expires_at) == (run.pk, "disk-ncsa", NOON + REQUEST_AGE)
    assert agent_runs.requested_runs(reporter, NOON + REQUEST_AGE) == []
    agent_runs.reap_agent_runs(NOON + REQUEST_AGE + GRACE - SECOND)
    assert state_of(run)[0] == State.EXPECTED
    seen(reporter, NOON + REQUEST_AGE + GRACE)
    agent_runs.reap_agent_runs(NOON + REQUEST_AGE + GRACE)
    assert state_of(run) == (State.MISSED, "reporter ncsa did not report it within a day of its request")


def test_retries_go_to_the_agent_and_slots_of_the_schedule_do_not(reporter: Reporter) -> None:
    expected(NOON - MINUTE)
    retry = expected(trigger=RETRY)
    assert agent_runs.requested_runs(reporter, NOON - SECOND) == []
    (asked,) = agent_runs.requested_runs(reporter, NOON)
    assert (asked.run, asked.expires_at) == (retry.pk, NOON + GRACE)


def test_another_reporter_gets_no_requests_of_the_agent(reporter: Reporter) -> None:
    run_now(Series.objects.get(), who="ada", now=NOON)
    other = Reporter.objects.create(name="sdsc", site=Site.objects.get(name="sdsc"))
    assert agent_runs.requested_runs(other, NOON) == []


def test_a_hold_stops_requests_and_force_overrules_it(reporter: Reporter) -> None:
    series = Series.objects.get()
    run = run_now(series, who="ada", now=NOON)
    hold(Scope(HoldKind.SERIES, series.name), HoldMode.DRAIN, who="ada", why="disk swap", now=NOON + SECOND)
    with pytest.raises(RunHeld):
        run_now(series, who="ada", now=NOON + MINUTE)
    forced = run_now(series, who="ada", force=True, now=NOON + MINUTE)
    assert [asked.run for asked in agent_runs.requested_runs(reporter, NOON + MINUTE)] == [forced.pk]
    assert state_of(run) == (State.SKIPPED, "drained by ada: disk swap")


def test_a_retry_during_maintenance_is_skipped(reporter: Reporter) -> None:
    MaintenanceWindow.objects.create(name="disks", starts_at=NOON, ends_at=NOON + MINUTE)
    retry = expected(trigger=RETRY)
    assert agent_runs.requested_runs(reporter, NOON) == []
    assert state_of(retry) == (State.SKIPPED, "maintenance: disks, until 2026-03-01 12:01 UTC")


def test_a_request_waits_while_its_series_runs(reporter: Reporter) -> None:
    running = expected(NOON - MINUTE)
    agent_runs.renew_leases(reporter, [running.pk], NOON)
    run = run_now(Series.objects.get(), who="ada", now=NOON)
    assert agent_runs.requested_runs(reporter, NOON) == []
    assert state_of(run) == (State.EXPECTED, "queued: overlap: another run of the series has not ended")


def test_a_disabled_series_of_an_agent_cannot_be_requested(reporter: Reporter) -> None:
    Series.objects.update(enabled=False)
    with pytest.raises(InvalidRequest, match="disk-ncsa is disabled: the agent of ncsa does not have it"):
        run_now(Series.objects.get(), who="ada", now=NOON)
    with pytest.raises(InvalidRequest):
        run_all(Scope(HoldKind.REPORTER, "ncsa"), who="ada", why="test", now=NOON)


def test_a_worker_waits_for_the_runs_of_an_agent_at_a_busy_site(reporter: Reporter) -> None:
    remote_grid(disk(), disk("home-disk", reporter="home"))
    Site.objects.update(runs_at_once=1)
    agent_runs.renew_leases(reporter, [expected().pk], NOON)
    run = expected(series="home-disk")
    assert claim_due(NOON) == []
    assert state_of(run) == (State.EXPECTED, "queued: room: the site ncsa already takes part in 1 runs")


def test_many_agents_cost_few_queries(
    reporter: Reporter, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    site = Site.objects.get(name="ncsa")
    for number in range(20):
        Reporter.objects.create(name=f"agent-{number}", site=site)
        remote_grid(disk(f"disk-{number}", reporter=f"agent-{number}"))
        expected(series=f"disk-{number}")
    with django_assert_max_num_queries(5):
        agent_runs.reap_agent_runs(NOON + GRACE - SECOND)
    with django_assert_max_num_queries(9):
        agent_runs.reap_agent_runs(NOON + GRACE)
    assert Run.objects.filter(state=State.MISSED).count() == 20
