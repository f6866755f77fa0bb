"""Runs that do not end by themselves are claimed again, lost, or missed."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest
from django.db import connection

from monitor.models import Run, Series
from monitor.models.run import SCHEDULE, State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import AHEAD, expand
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_now
from tests.monitor.builders import asked_for

MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=31)
LATE = 4 * MINUTE
EVERY_MINUTE_AHEAD = AHEAD // MINUTE


def states() -> Counter[str]:
    return Counter(Run.objects.values_list("state", flat=True))


def test_a_run_whose_executor_died_is_claimed_again_and_finally_lost(circle: Series, noon: datetime) -> None:
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


def test_a_run_that_was_claimed_but_never_started_is_never_lost(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    for times in range(10):
        assert len(claim_due(noon + times * LEASE)) == 1
        reap(noon + (times + 1) * LEASE)
    run = Run.objects.get()
    assert (run.state, run.reason) == (State.EXPECTED, "no worker started it; it is claimed again")


def test_a_slot_that_no_reporter_took_in_time_is_missed(circle: Series, noon: datetime) -> None:
    expand(noon)
    reap(noon + 3.5 * MINUTE)
    assert states() == {State.MISSED: 1, State.EXPECTED: EVERY_MINUTE_AHEAD - 1}
    assert "within 120 s" in Run.objects.get(state=State.MISSED).reason


@pytest.mark.django_db(transaction=True)
def test_reaping_skips_runs_whose_report_is_being_stored(circle: Series, noon: datetime) -> None:
    """Both transactions lock many runs: waiting could deadlock."""
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


def test_a_slot_that_was_claimed_but_never_started_is_missed_not_lost(circle: Series, noon: datetime) -> None:
    expand(noon)
    claim_due(noon + MINUTE)
    reap(noon + MINUTE + LEASE)
    reap(noon + 3.5 * MINUTE)
    assert Run.objects.get(slot=noon + MINUTE).state == State.MISSED


def test_a_started_run_is_claimed_again_although_its_series_was_disabled(
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
