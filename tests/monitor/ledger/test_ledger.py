"""The expectation ledger: expanded, claimed, reaped; every slot has exactly one outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from monitor import tick
from monitor.db.advisory_locks import AdvisoryLock
from monitor.ledger import heartbeats, transitions
from monitor.ledger.claim import Claim, claim_due, claim_one, release
from monitor.ledger.expand import AHEAD, CATCH_UP, expand
from monitor.ledger.reap import reap
from monitor.ledger.run_now import run_now
from monitor.models import Binding, MaintenanceWindow, Reporter, Run, Series, Site, Transition
from monitor.models.run import ENDED, PENDING, REPORTED, SCHEDULE, State
from monitor.worker.dispatch import dispatch
from reporters.report import run_id
from tests.monitor.builders import asked_for
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=31)
LATE = 4 * MINUTE


def states() -> Counter[str]:
    return Counter(Run.objects.values_list("state", flat=True))


EVERY_MINUTE_AHEAD = AHEAD // MINUTE


def test_a_schedule_is_expanded_a_day_ahead_and_only_once(circle: Series, noon: datetime) -> None:
    assert expand(noon) == EVERY_MINUTE_AHEAD
    assert expand(noon) == 0
    assert Run.objects.order_by("slot").first().slot == noon + MINUTE  # type: ignore[union-attr]
    assert Run.objects.count() == EVERY_MINUTE_AHEAD


def test_a_series_is_expanded_further_when_half_a_day_is_left(circle: Series, noon: datetime) -> None:
    expand(noon)
    assert expand(noon + AHEAD / 2 - MINUTE) == 0
    assert expand(noon + AHEAD / 2 + MINUTE) == 12 * 60 + 1


def test_a_runs_identity_is_that_of_its_series_and_slot(circle: Series, noon: datetime) -> None:
    expand(noon)
    assert {run.pk for run in Run.objects.all()} == {
        run_id("circle", noon + MINUTE * number) for number in range(1, EVERY_MINUTE_AHEAD + 1)
    }


def test_after_an_outage_the_slots_in_between_are_expected_too(circle: Series, noon: datetime) -> None:
    expand(noon)
    expand(noon + timedelta(days=3))
    assert Run.objects.count() == 4 * EVERY_MINUTE_AHEAD


def test_after_a_very_long_outage_the_schedule_is_in_force_anew(circle: Series, noon: datetime) -> None:
    Series.objects.update(schedule="0 * * * *")
    expand(noon)
    back = noon + timedelta(days=30)
    assert expand(back) == (CATCH_UP + AHEAD) / timedelta(hours=1)
    assert Series.objects.get().scheduled_since == back - CATCH_UP


def test_future_slots_of_a_disabled_series_leave_the_ledger(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(enabled=False)
    expand(noon + MINUTE * 10)
    assert Run.objects.count() == 10
    assert claim_due(noon + MINUTE * 10) == []


def test_what_is_due_is_claimed_once(circle: Series, noon: datetime) -> None:
    expand(noon)
    assert claim_due(noon) == []
    first = claim_due(noon + MINUTE)
    assert first == [Claim(run_id("circle", noon + MINUTE), noon + MINUTE, 1, "reporter.home")]
    assert claim_due(noon + MINUTE) == []


def test_a_slot_whose_series_still_runs_is_skipped_with_its_reason(circle: Series, noon: datetime) -> None:
    expand(noon)
    claim_due(noon + MINUTE)
    assert claim_due(noon + 2 * MINUTE) == []
    skipped = Run.objects.get(slot=noon + 2 * MINUTE)
    assert (skipped.state, skipped.reason[:8]) == (State.SKIPPED, "overlap:")


def test_a_run_that_was_asked_for_waits_until_its_series_is_free(circle: Series, noon: datetime) -> None:
    expand(noon)
    (scheduled,) = claim_due(noon + MINUTE)
    asked = run_now(circle, who="ada", now=noon + MINUTE + timedelta(seconds=1))
    assert claim_due(noon + MINUTE + timedelta(seconds=2)) == []
    transitions.move(Run.objects.all(), [scheduled.run_id], State.PASSED, cause="it ran")
    assert [claim.run_id for claim in claim_due(noon + MINUTE + timedelta(seconds=3))] == [asked.pk]


def test_a_reporter_gets_no_more_than_it_has_room_for(circle: Series, noon: datetime) -> None:
    Reporter.objects.update(capacity=2)
    for number in range(5):
        circle.pk, circle.name = None, f"circle-{number}"
        circle.save()
        run_now(circle, who="ada", now=noon)
    assert len(claim_due(noon)) == 2
    assert claim_due(noon) == []


def another(of: Series, name: str, **changes: object) -> Series:
    """A series like *of*, at the same resources, under another name."""
    series = Series.objects.get(pk=of.pk)
    series.pk, series.name = None, name
    for field, value in changes.items():
        setattr(series, field, value)
    series.save()
    Binding.objects.bulk_create(
        Binding(series=series, role=one.role, position=one.position, resource=one.resource)
        for one in of.bindings.all()
    )
    Series.objects.update(created_at=of.created_at)
    return series


def test_series_that_want_a_link_alone_run_one_after_the_other_and_say_for_whom_they_wait(
    circle: Series, noon: datetime
) -> None:
    Series.objects.update(exclusive="link")
    another(circle, "second", exclusive="link")
    expand(noon)
    (first,) = claim_due(noon + MINUTE)
    rival = Run.objects.get(pk=first.run_id).series
    waiting = Run.objects.get(slot=noon + MINUTE, state=State.EXPECTED)
    assert waiting.reason == f"queued: exclusive: {rival} is using the same sites"
    reap(noon + 5 * MINUTE)  # its grace is over, its time to wait is not
    transitions.move(Run.objects.all(), [first.run_id], State.PASSED, cause="it ran")
    assert waiting.pk in {claim.run_id for claim in claim_due(noon + 5 * MINUTE)}


def test_a_slot_that_waited_too_long_for_what_it_wants_alone_is_skipped_as_busy(
    circle: Series, noon: datetime
) -> None:
    Series.objects.update(exclusive="site", schedule="0 * * * *")
    another(circle, "second", exclusive="site", exclusive_wait_seconds=60)
    expand(noon)
    hour = noon + timedelta(hours=1)
    claim_due(hour)
    claim_due(hour + MINUTE)
    skipped = Run.objects.get(state=State.SKIPPED)
    assert (skipped.series.name, skipped.reason) == (
        "second",
        "busy: circle used the same sites for 60 s",
    )


def test_a_site_takes_part_in_no_more_runs_than_it_says(circle: Series, noon: datetime) -> None:
    another(circle, "second")
    Site.objects.filter(name="site-of-here").update(runs_at_once=1)
    expand(noon)
    assert len(claim_due(noon + MINUTE)) == 1
    assert Run.objects.get(slot=noon + MINUTE, state=State.EXPECTED).reason.startswith(
        "queued: room: the site"
    )


def test_slots_of_a_blackout_are_skipped_with_its_title(circle: Series, noon: datetime) -> None:
    blackout = MaintenanceWindow.objects.create(
        name="disks", title="new disks", starts_at=noon, ends_at=noon + 2 * MINUTE
    )
    blackout.sites.add(Site.objects.get(name="site-of-there"))
    expand(noon)
    assert claim_due(noon + MINUTE) == []
    assert Run.objects.get(slot=noon + MINUTE).reason.startswith("maintenance: new disks, until ")
    assert len(claim_due(noon + 2 * MINUTE)) == 1


def test_jitter_begins_each_run_at_a_time_of_its_own_that_never_changes(
    circle: Series, noon: datetime
) -> None:
    Series.objects.update(jitter_seconds=30)
    expand(noon)
    late = {run.slot: (run.due_at - run.slot).total_seconds() for run in Run.objects.all()}
    assert set(late.values()) == set(range(31))
    Series.objects.update(schedule="*/2 * * * *")
    expand(noon)
    assert all(late[run.slot] == (run.due_at - run.slot).total_seconds() for run in Run.objects.all())
    first = Run.objects.order_by("due_at")[0]
    assert claim_due(first.due_at - timedelta(seconds=1)) == []
    assert [claim.run_id for claim in claim_due(first.due_at)] == [first.pk]


@pytest.mark.django_db(transaction=True)
def test_two_claimers_at_once_never_claim_the_same_run(circle: Series, noon: datetime) -> None:
    Reporter.objects.update(capacity=100)
    for number in range(40):
        circle.pk, circle.name = None, f"circle-{number}"
        circle.save()
        run_now(circle, who="ada", now=noon)

    def claim(_: int) -> list[Claim]:
        try:
            return claim_due(noon)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        claims = [claim for batch in pool.map(claim, range(4)) for claim in batch]
    assert len(claims) == len({claim.run_id for claim in claims}) == 40


def test_a_run_whose_executor_died_is_claimed_again_and_at_last_given_up(
    circle: Series, noon: datetime
) -> None:
    run_now(circle, who="ada", now=noon)
    now = noon
    for attempt in (1, 2, 3):
        (claim,) = claim_due(now)
        assert claim.attempt == attempt
        transitions.move(Run.objects.all(), [claim.run_id], State.RUNNING, cause="a test")
        reap(now + timedelta(seconds=1))
        assert Run.objects.get().state == State.RUNNING
        now += LEASE
        reap(now)
    assert Run.objects.get().state == State.LOST
    assert claim_due(now) == []


def test_a_run_that_was_handed_out_but_never_begun_is_never_given_up(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    for times in range(10):
        assert len(claim_due(noon + times * LEASE)) == 1
        reap(noon + (times + 1) * LEASE)
    run = Run.objects.get()
    assert (run.state, run.reason) == (State.EXPECTED, "no worker started it; it is claimed again")


def test_a_slot_that_nobody_took_in_time_is_missed(circle: Series, noon: datetime) -> None:
    expand(noon)
    reap(noon + 3.5 * MINUTE)
    assert states() == {State.MISSED: 1, State.EXPECTED: EVERY_MINUTE_AHEAD - 1}
    assert "within 120 s" in Run.objects.get(state=State.MISSED).reason


@pytest.mark.django_db(transaction=True)
def test_who_ends_slots_waits_for_nobody_who_stores_a_report_of_one(circle: Series, noon: datetime) -> None:
    """Both lock many, and would end up waiting for each other."""
    taken, free = asked_for(circle, noon, times=2, trigger=SCHEDULE)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT FROM monitor_run WHERE id = %s FOR NO KEY UPDATE", [taken.pk])
            reap(noon + LATE)
            assert Run.objects.get(state=State.MISSED) == free
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    reap(noon + LATE)
    assert states() == {State.MISSED: 2}


def test_after_an_outage_late_slots_are_missed_and_none_is_run_in_place_of_another(
    circle: Series, noon: datetime
) -> None:
    tick.tick(noon)
    tick.tick(noon + 30 * MINUTE)
    assert set(Run.objects.filter(slot__lt=noon + 28 * MINUTE).values_list("state", flat=True)) == {
        State.MISSED
    }


def test_a_slot_that_was_handed_out_but_never_begun_is_missed_not_lost(
    circle: Series, noon: datetime
) -> None:
    expand(noon)
    claim_due(noon + MINUTE)
    reap(noon + MINUTE + LEASE)
    reap(noon + 3.5 * MINUTE)
    assert Run.objects.get(slot=noon + MINUTE).state == State.MISSED


def test_a_silent_reporter_is_given_nothing_until_it_is_heard_again(circle: Series, noon: datetime) -> None:
    heartbeats.record("reporter.home", noon)
    run_now(circle, who="ada", now=noon)
    assert claim_due(noon + MINUTE) == []
    heartbeats.record("reporter.home", noon + MINUTE)
    assert len(claim_due(noon + MINUTE)) == 1


def test_while_a_series_is_switched_off_nothing_is_expected_of_it(circle: Series, noon: datetime) -> None:
    tick.tick(noon)
    Series.objects.update(enabled=False)
    tick.tick(noon + timedelta(seconds=10))
    heartbeats.record("beat", noon + 300 * MINUTE)
    Series.objects.update(enabled=True)
    tick.tick(noon + 300 * MINUTE + timedelta(seconds=2))
    assert Run.objects.order_by("slot").first().slot == noon + 301 * MINUTE  # type: ignore[union-attr]


def test_what_began_is_ended_even_if_its_series_is_switched_off_meanwhile(
    circle: Series, noon: datetime
) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    transitions.move(
        Run.objects.all(), [claim.run_id], State.RUNNING, cause="it began", started_at=noon + MINUTE
    )
    Series.objects.update(enabled=False)
    reap(noon + MINUTE + LEASE)
    assert [again.run_id for again in claim_due(noon + MINUTE + LEASE)] == [claim.run_id]


@pytest.mark.parametrize("unreadable", ["banana", "61 * * * *"])
def test_a_schedule_that_cannot_be_read_stops_its_own_series_alone(
    circle: Series, noon: datetime, unreadable: str
) -> None:
    Series.objects.create(
        suite=circle.suite,
        name="a-bad-one",
        probe="circle",
        reporter=circle.reporter,
        schedule=unreadable,
    )
    assert expand(noon) == EVERY_MINUTE_AHEAD


def test_slots_of_a_schedule_that_was_changed_leave_the_ledger(circle: Series, noon: datetime) -> None:
    tick.tick(noon)
    tick.tick(noon + MINUTE * 5)
    Series.objects.update(schedule="0 * * * *")
    tick.tick(noon + MINUTE * 5 + timedelta(seconds=2))
    first, *others = Run.objects.filter(slot__gt=noon + MINUTE * 5).order_by("slot")
    assert first.slot == noon + timedelta(hours=1)
    assert len(others) == 23
    assert Run.objects.count() == 5 + 24


def test_a_change_that_says_nothing_of_the_schedule_leaves_the_ledger_alone(
    circle: Series, noon: datetime
) -> None:
    expand(noon)
    Series.objects.update(limit_seconds=7.0)
    assert expand(noon) == 0
    assert Run.objects.count() == EVERY_MINUTE_AHEAD


def test_a_run_that_is_claimed_outlives_its_schedule(circle: Series, noon: datetime) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    Series.objects.update(schedule="")
    expand(noon + MINUTE)
    assert [run.pk for run in Run.objects.all()] == [claim.run_id]


def test_a_series_without_a_schedule_any_more_has_no_future(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(schedule="")
    expand(noon)
    assert Run.objects.count() == 0


def test_however_often_a_run_is_asked_for_one_waits_and_nobody_starves(
    circle: Series, noon: datetime
) -> None:
    asked = {run_now(circle, who="ada", now=noon + timedelta(milliseconds=n)).pk for n in range(100)}
    assert len(asked) == Run.objects.count() == 1


def test_a_claim_that_the_broker_did_not_take_is_put_back_and_not_counted(
    circle: Series, noon: datetime
) -> None:
    run_now(circle, who="ada", now=noon)

    def refuse(_: Sequence[Claim]) -> None:
        raise OperationalError("connection refused")

    dispatch(claim_due(noon), publish=refuse)
    run = Run.objects.get()
    assert (run.state, run.attempt) == (State.EXPECTED, 0)


def test_only_the_latest_claim_can_be_released(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    (stale,) = claim_due(noon)
    reap(noon + LEASE)
    claim_due(noon + LEASE)
    release([stale])
    assert Run.objects.get().state == State.CLAIMED


def test_a_run_can_be_claimed_by_name_unless_its_series_is_busy(circle: Series, noon: datetime) -> None:
    first = run_now(circle, who="ada", now=noon)
    assert claim_one(first, noon) == Claim(first.pk, first.slot, 1, "reporter.home")
    second = run_now(circle, who="ada", now=noon + MINUTE)
    assert claim_one(second, noon) is None


def test_two_ticks_at_once_are_one(circle: Series, noon: datetime) -> None:
    # A second connection holds the lock as another beat's tick would.
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.TICK])
        tick.tick(noon)
        assert Run.objects.count() == 0
        cursor.execute("SELECT pg_advisory_unlock(%s)", [AdvisoryLock.TICK])
    other.close()
    tick.tick(noon)
    assert Run.objects.count() == EVERY_MINUTE_AHEAD


def test_after_an_outage_of_the_monitor_nobody_is_taken_for_dead_at_once(
    circle: Series, noon: datetime
) -> None:
    run_now(circle, who="ada", now=noon)
    tick.tick(noon)
    assert Run.objects.get(slot=noon).state == State.CLAIMED
    back = noon + timedelta(minutes=5)
    tick.tick(back)
    assert Run.objects.get(slot=noon).state == State.CLAIMED
    for seconds in range(2, 34, 2):
        tick.tick(back + timedelta(seconds=seconds))
    assert Run.objects.get(slot=noon).attempt == 2


@pytest.mark.parametrize("ended", sorted(ENDED))
def test_an_ended_run_never_becomes_pending_again(ended: str) -> None:
    assert not set(transitions.ALLOWED.get(ended, ())) & set(PENDING)


@pytest.mark.parametrize("reported", sorted(REPORTED))
def test_what_was_reported_stays(reported: str) -> None:
    assert reported not in transitions.ALLOWED


def test_the_database_refuses_a_state_that_it_does_not_know(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(state="vanished")


def allowed_by_the_database(series: Series, slot: datetime, source: str, target: str) -> bool:
    """Whether a run may go from *source* to *target*, whoever asks."""
    identity = run_id(series.name, slot)
    run = Run.objects.create(id=identity, series=series, slot=slot, due_at=slot, state=source)
    try:
        with transaction.atomic():
            Run.objects.filter(pk=run.pk).update(state=target)
    except IntegrityError:
        return False
    return True


def test_the_database_knows_what_may_follow_what(circle: Series, noon: datetime) -> None:
    pairs = [(source, target) for source in State.values for target in State.values if source != target]
    allowed = {
        pair
        for number, pair in enumerate(pairs)
        if allowed_by_the_database(circle, noon + number * MINUTE, *pair)
    }
    assert allowed == {
        (source, target) for source, targets in transitions.ALLOWED.items() for target in targets
    }


def test_how_a_run_came_to_its_end_is_kept_with_time_and_cause(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    claim_due(noon)
    reap(noon + LEASE)
    moved = list(Transition.objects.order_by("id"))
    assert [(one.source, one.target, one.cause) for one in moved] == [
        ("expected", "claimed", "claimed for its reporter"),
        ("claimed", "expected", "its lease expired"),
    ]
    assert moved[0].at <= moved[1].at <= timezone.now()


def test_one_slot_of_a_series_has_one_run(circle: Series, noon: datetime) -> None:
    assert run_now(circle, who="ada", now=noon) == run_now(circle, who="bob", now=noon)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.create(id=run_id("other", noon), series=circle, slot=noon, due_at=noon)


@pytest.mark.parametrize(
    ("schedule", "first"),
    [
        ("0 * * * *", datetime(2026, 3, 1, 13, tzinfo=UTC)),
        ("30 12 * * *", datetime(2026, 3, 1, 12, 30, tzinfo=UTC)),
    ],
)
def test_slots_follow_the_cron_expression(
    circle: Series, noon: datetime, schedule: str, first: datetime
) -> None:
    Series.objects.update(schedule=schedule)
    expand(noon)
    assert Run.objects.order_by("slot").values_list("slot", flat=True)[0] == first


@pytest.mark.django_db(transaction=True)
def test_a_run_does_not_end_without_a_mark_that_something_has_changed(circle: Series, noon: datetime) -> None:
    (run,) = asked_for(circle, noon)
    other = connection.copy()
    try:
        with other.cursor() as theirs, connection.cursor() as ours:
            theirs.execute("BEGIN")
            theirs.execute("LOCK TABLE monitor_dirtyhour IN EXCLUSIVE MODE")  # nobody can mark anything
            ours.execute("SET lock_timeout = 50")
            with pytest.raises(DatabaseError, match="lock timeout"):
                transitions.move(Run.objects.all(), [run.pk], State.BROKEN, cause="its report was refused")
            ours.execute("RESET lock_timeout")
    finally:
        other.close()
    assert Run.objects.get().state == State.EXPECTED


@pytest.mark.django_db(transaction=True)
def test_who_expands_keeps_nobody_from_making_room_while_he_waits_for_it(circle: Series) -> None:
    def expand_in_vain() -> None:
        try:
            with transaction.atomic():
                expand(datetime(2033, 3, 3, tzinfo=UTC))  # there is no room for it
                transaction.set_rollback(True)
        finally:
            connection.close()

    other = connection.copy()
    try:
        with ThreadPoolExecutor(1) as pool, other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.PARTITIONS])
            expanding = pool.submit(expand_in_vain)
            assert eventually(_somebody_waits)
            cursor.execute(
                "LOCK TABLE monitor_series IN SHARE ROW EXCLUSIVE MODE NOWAIT"
            )  # as attaching does
            cursor.execute("SELECT FROM monitor_series FOR UPDATE NOWAIT")  # as who renames one does
            cursor.execute("ROLLBACK")
            expanding.result()
    finally:
        other.close()


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted)"
        )
        return bool(cursor.fetchone()[0])
