"""Which transitions are allowed, and what they record."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from monitor.models import Run, Series, Transition
from monitor.models.run import ENDED, PENDING, REPORTED, State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_now
from reporters.report import run_id
from tests.monitor.builders import asked_for

MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=31)


@pytest.mark.parametrize("ended", sorted(ENDED))
def test_an_ended_run_never_becomes_pending_again(ended: str) -> None:
    assert not set(transitions.ALLOWED.get(ended, ())) & set(PENDING)


@pytest.mark.parametrize("reported", sorted(REPORTED))
def test_a_reported_outcome_is_final(reported: str) -> None:
    assert reported not in transitions.ALLOWED


def test_the_database_refuses_an_unknown_state(circle: Series, noon: datetime) -> None:
    run = run_now(circle, who="ada", now=noon)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(state="vanished")


def allowed_by_the_database(series: Series, slot: datetime, source: str, target: str) -> bool:
    """Return whether the database lets a run go from *source* to *target*."""
    identity = run_id(series.name, slot)
    run = Run.objects.create(id=identity, series=series, slot=slot, due_at=slot, state=source)
    try:
        with transaction.atomic():
            Run.objects.filter(pk=run.pk).update(state=target)
    except IntegrityError:
        return False
    return True


def test_the_database_allows_the_same_transitions_as_the_code(circle: Series, noon: datetime) -> None:
    pairs = [(source, target) for source in State.values for target in State.values if source != target]
    allowed = {
        pair
        for number, pair in enumerate(pairs)
        if allowed_by_the_database(circle, noon + number * MINUTE, *pair)
    }
    assert allowed == {
        (source, target) for source, targets in transitions.ALLOWED.items() for target in targets
    }


def test_transitions_are_recorded_with_time_and_cause(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    claim_due(noon)
    reap(noon + LEASE)
    moved = list(Transition.objects.order_by("id"))
    assert [(transition.source, transition.target, transition.cause) for transition in moved] == [
        ("expected", "claimed", "claimed for its reporter"),
        ("claimed", "expected", "its lease expired"),
    ]
    assert moved[0].at <= moved[1].at <= timezone.now()


@pytest.mark.django_db(transaction=True)
def test_a_run_does_not_end_unless_its_dirty_hour_is_recorded(circle: Series, noon: datetime) -> None:
    (run,) = asked_for(circle, noon)
    other = connection.copy()
    try:
        with other.cursor() as blocking, connection.cursor() as own:
            blocking.execute("BEGIN")
            blocking.execute("LOCK TABLE monitor_dirtyhour IN EXCLUSIVE MODE")  # blocks inserts
            own.execute("SET lock_timeout = 50")
            with pytest.raises(DatabaseError, match="lock timeout"):
                transitions.move(Run.objects.all(), [run.pk], State.BROKEN, cause="its report was refused")
            own.execute("RESET lock_timeout")
    finally:
        other.close()
    assert Run.objects.get().state == State.EXPECTED
