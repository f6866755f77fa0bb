"""Expansion of schedules into the ledger."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from monitor import tick
from monitor.core.db.advisory_locks import AdvisoryLock
from monitor.models import Run, Series
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import AHEAD, CATCH_UP, expand
from reporters.report import run_id
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)
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


def test_the_id_of_a_run_is_derived_from_its_series_and_slot(circle: Series, noon: datetime) -> None:
    expand(noon)
    assert {run.pk for run in Run.objects.all()} == {
        run_id("circle", noon + MINUTE * number) for number in range(1, EVERY_MINUTE_AHEAD + 1)
    }


def test_slots_during_an_outage_are_expected_too(circle: Series, noon: datetime) -> None:
    expand(noon)
    expand(noon + timedelta(days=3))
    assert Run.objects.count() == 4 * EVERY_MINUTE_AHEAD


def test_after_a_very_long_outage_the_schedule_starts_again(circle: Series, noon: datetime) -> None:
    Series.objects.update(schedule="0 * * * *")
    expand(noon)
    back = noon + timedelta(days=30)
    assert expand(back) == (CATCH_UP + AHEAD) / timedelta(hours=1)
    assert Series.objects.get().scheduled_since == back - CATCH_UP


def test_future_slots_of_a_disabled_series_are_deleted(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(enabled=False)
    expand(noon + MINUTE * 10)
    assert Run.objects.count() == 10
    assert claim_due(noon + MINUTE * 10) == []


def test_jitter_delays_each_run_by_a_hashed_constant_time(circle: Series, noon: datetime) -> None:
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


@pytest.mark.parametrize("unreadable", ["banana", "61 * * * *"])
def test_an_invalid_schedule_affects_its_own_series_only(
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


def test_future_slots_of_a_changed_schedule_are_replaced(circle: Series, noon: datetime) -> None:
    tick.tick(noon)
    tick.tick(noon + MINUTE * 5)
    Series.objects.update(schedule="0 * * * *")
    tick.tick(noon + MINUTE * 5 + timedelta(seconds=2))
    first, *others = Run.objects.filter(slot__gt=noon + MINUTE * 5).order_by("slot")
    assert first.slot == noon + timedelta(hours=1)
    assert len(others) == 23
    assert Run.objects.count() == 5 + 24


def test_a_change_of_other_fields_keeps_the_slots(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(limit_seconds=7.0)
    assert expand(noon) == 0
    assert Run.objects.count() == EVERY_MINUTE_AHEAD


def test_a_claimed_run_outlives_its_schedule(circle: Series, noon: datetime) -> None:
    expand(noon)
    (claim,) = claim_due(noon + MINUTE)
    Series.objects.update(schedule="")
    expand(noon + MINUTE)
    assert [run.pk for run in Run.objects.all()] == [claim.run_id]


def test_a_series_whose_schedule_was_removed_has_no_future_slots(circle: Series, noon: datetime) -> None:
    expand(noon)
    Series.objects.update(schedule="")
    expand(noon)
    assert Run.objects.count() == 0


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
def test_expanding_holds_no_series_locks_while_it_waits_to_create_partitions(circle: Series) -> None:
    def expand_and_roll_back() -> None:
        try:
            with transaction.atomic():
                expand(datetime(2033, 3, 3, tzinfo=UTC))  # there are no partitions for it
                transaction.set_rollback(True)
        finally:
            connection.close()

    other = connection.copy()
    try:
        with ThreadPoolExecutor(1) as pool, other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.PARTITIONS])
            expanding = pool.submit(expand_and_roll_back)
            assert eventually(_is_lock_awaited)
            cursor.execute(
                "LOCK TABLE monitor_series IN SHARE ROW EXCLUSIVE MODE NOWAIT"
            )  # as attaching a partition does
            cursor.execute("SELECT FROM monitor_series FOR UPDATE NOWAIT")  # as renaming a series does
            cursor.execute("ROLLBACK")
            expanding.result()
    finally:
        other.close()


def _is_lock_awaited() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted)"
        )
        return bool(cursor.fetchone()[0])
