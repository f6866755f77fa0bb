"""What is claimed when there is room, how much at a time, and what is known of how long it takes."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from monitor.celery import app
from monitor.db.advisory_locks import AdvisoryLock
from monitor.ingest.service import ingest
from monitor.ledger import transitions
from monitor.ledger.claim import EXTRA_DUE_RUNS, MAX_DUE_RUNS, claim_due, claim_freed
from monitor.models import Reporter, Run, Series, Site
from monitor.models.run import State
from monitor.worker.deliver_spool import deliver, spool_report
from monitor.worker.start_runs import start_runs
from reporters import report as wire
from tests.monitor.builders import asked_for, circle_report, noops

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def ask_each(series: Sequence[Series], due_at: datetime) -> None:
    for one in series:
        asked_for(one, due_at)


def claimed() -> set[str]:
    return set(Run.objects.filter(state=State.CLAIMED).values_list("series__name", flat=True))


def ended(series: Series, slot: datetime, *, seconds: float = 7.0, outcome: str = "passed") -> None:
    told = circle_report(slot, series=series.name, seconds=seconds, outcome=outcome)
    assert ingest(wire.to_json(told)).accepted


def usual_seconds(series: Series, now: datetime) -> float:
    """How long a run that is claimed now is taken to need."""
    asked_for(series, now)
    (one,) = claim_due(now)
    return one.usual_seconds


def block(site: str) -> None:
    """Let whatever needs *site* wait, nobody knows how long."""
    Site.objects.filter(name=site).update(runs_at_once=0)


@contextmanager
def claimed_by_somebody_else() -> Iterator[None]:
    """While another session of the depot claims."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.CLAIM])
            yield
            cursor.execute(
                "SELECT pg_advisory_unlock(%s)", [AdvisoryLock.CLAIM]
            )  # closing lets go of it some time
    finally:
        other.close()


def test_the_room_of_a_run_that_has_ended_is_filled_at_once(db: None, tmp_path: Path, noon: datetime) -> None:
    series = noops(4, tmp_path)
    Reporter.objects.update(capacity=2)
    ask_each(series, noon)
    assert len(claim_due(noon)) == 2
    assert claim_freed(noon) == []
    first = Run.objects.filter(state=State.CLAIMED).earliest("pk")
    transitions.move(Run.objects.all(), [first.pk], State.PASSED, cause="it ran")
    (freed,) = claim_freed(noon)
    assert Run.objects.get(pk=freed.run_id).state == State.CLAIMED
    assert Run.objects.filter(state=State.EXPECTED).count() == 1


@pytest.fixture
def own_queue(db: None, tmp_path: Path) -> Iterator[str]:
    """The name of the only reporter, whose queue nobody else uses."""
    name = f"own-{uuid.uuid4().hex}"
    noops(2, tmp_path)
    Reporter.objects.update(name=name, capacity=1)
    yield name
    with app.connection_for_write() as broker:
        broker.SimpleQueue(Reporter(name=name).queue).queue.delete()


def sent_to(reporter: str) -> list[str]:
    """The runs of the first task that waits in the queue of *reporter*."""
    with app.connection_for_write() as broker:
        message = broker.SimpleQueue(Reporter(name=reporter).queue).get(block=False)
        message.ack()
        runs, _slots = message.payload[0]
        return list(runs)


@pytest.mark.django_db(transaction=True)
def test_when_a_report_is_delivered_the_next_run_is_on_its_way(
    own_queue: str, settings: Settings, tmp_path: Path, noon: datetime
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    first, second = Series.objects.order_by("name")
    asked_for(first, noon)
    asked_for(second, noon + SECOND)
    (one,) = claim_due(noon + MINUTE)
    start_runs([one.run_id], noon + MINUTE)
    spool_report(one.run_id, wire.to_json(circle_report(noon, series=first.name, reporter=own_queue)))
    assert deliver() == 1
    (waited,) = Run.objects.filter(series=second)
    assert waited.state == State.CLAIMED
    assert sent_to(own_queue) == [str(waited.pk)]


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_to_fill_room_while_somebody_else_claims(tmp_path: Path, noon: datetime) -> None:
    ask_each(noops(1, tmp_path), noon)
    with claimed_by_somebody_else():
        assert claim_freed(noon) == []
        assert claimed() == set()
    assert len(claim_freed(noon)) == 1


@pytest.mark.parametrize(
    ("capacity", "busy", "expected"),
    [
        (1, 1, 0),
        (1, 0, 1),
        (8, 7, 1),
        (9, 8, 0),  # less than an eighth
        (9, 7, 2),
        (17, 15, 0),
        (17, 14, 3),
    ],
)
def test_a_reporter_of_many_runs_gets_some_together_when_an_eighth_of_its_room_is_free(
    db: None, tmp_path: Path, noon: datetime, capacity: int, busy: int, expected: int
) -> None:
    (series,) = noops(1, tmp_path)
    Reporter.objects.update(capacity=capacity)
    asked_for(series, noon - MINUTE, times=busy, state=State.RUNNING)
    others = [
        Series(suite=series.suite, name=f"n{n}", probe="noop", reporter=series.reporter) for n in range(5)
    ]
    ask_each(Series.objects.bulk_create(others), noon)
    assert len(claim_freed(noon)) == expected


@pytest.mark.parametrize(("waiting", "found"), [(EXTRA_DUE_RUNS, 1), (EXTRA_DUE_RUNS + 1, 0)])
def test_what_waits_for_something_else_keeps_no_room_empty_up_to_a_number(
    db: None, tmp_path: Path, noon: datetime, waiting: int, found: int
) -> None:
    stuck, free = noops(2, tmp_path)
    Reporter.objects.update(capacity=1)
    block("site-0")
    asked_for(stuck, noon, times=waiting)
    asked_for(free, noon + SECOND)
    assert len(claim_freed(noon + MINUTE)) == found
    assert len(claim_due(noon + MINUTE)) == 1 - found  # the tick looks further
    assert claimed() == {"noop-1"}


def test_whatever_is_known_to_wait_long_holds_nothing_else_up(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    stuck, free = noops(2, tmp_path)
    block("site-0")
    asked_for(stuck, noon, times=MAX_DUE_RUNS + 1, kept_until=noon + timedelta(days=1))
    asked_for(free, noon + SECOND)
    assert len(claim_due(noon + MINUTE)) == 1
    assert claimed() == {"noop-1"}


def test_what_was_known_to_wait_long_is_claimed_when_it_may_begin(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    asked_for(series, noon, kept_until=noon + timedelta(days=1))
    assert len(claim_freed(noon)) == 1


def test_a_reporter_that_is_full_takes_nothing_from_one_that_is_not(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    full, free = noops(2, tmp_path)
    asked_for(full, noon - MINUTE, state=State.RUNNING)
    Reporter.objects.update(capacity=1)
    Series.objects.filter(pk=free.pk).update(reporter=Reporter.objects.create(name="elsewhere", capacity=1))
    asked_for(full, noon)
    asked_for(free, noon)
    assert [one.queue for one in claim_freed(noon)] == ["reporter.elsewhere"]


def test_how_long_a_run_takes_is_not_known_before_one_has_ended(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    asked_for(series, noon - MINUTE, state=State.MISSED)
    assert usual_seconds(series, noon) == math.inf


def test_a_run_is_taken_to_need_as_long_as_the_last_that_ended(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    ended(series, noon - 4 * MINUTE, seconds=20.0)
    ended(series, noon - 3 * MINUTE, seconds=0.5)
    asked_for(series, noon - 2 * MINUTE, state=State.SKIPPED)
    asked_for(series, noon + MINUTE)  # of the future
    assert usual_seconds(series, noon) == pytest.approx(0.5)


def test_a_run_that_failed_does_not_tell_how_long_the_next_takes(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    ended(series, noon - 2 * MINUTE, seconds=20.0)
    ended(series, noon - MINUTE, seconds=0.01, outcome="failed")
    assert usual_seconds(series, noon) == math.inf


def test_a_report_of_a_slot_that_is_still_to_come_says_nothing_yet(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    ended(series, noon - MINUTE, seconds=3.0)
    ended(series, noon + MINUTE, seconds=50.0)
    assert usual_seconds(series, noon) == pytest.approx(3.0)


def test_a_run_that_ended_without_having_begun_tells_no_time(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    """As one does whose report is refused: it has an end, and nobody knows of a beginning."""
    (series,) = noops(1, tmp_path)
    asked_for(series, noon - MINUTE, state=State.BROKEN, ended_at=noon)
    assert usual_seconds(series, noon) == math.inf
