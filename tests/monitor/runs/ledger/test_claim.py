"""Claims: which due runs are claimed, how many at a time, and the usual duration of claimed runs."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from kombu.exceptions import OperationalError

from monitor.celery import app
from monitor.core.db.advisory_locks import AdvisoryLock
from monitor.models import Reporter, Run, Series, Site
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import (
    EXTRA_DUE_RUNS,
    MAX_DUE_RUNS,
    Claim,
    claim_due,
    claim_freed,
    claim_one,
    release,
)
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_now
from monitor.runs.worker.deliver_spool import deliver, spool_report
from monitor.runs.worker.dispatch import dispatch
from monitor.runs.worker.start_runs import start_runs
from reporters import report as wire
from reporters.report import run_id
from tests.monitor.builders import asked_for, circle_report, noops

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=31)


def ask_each(series: Sequence[Series], due_at: datetime) -> None:
    for each_series in series:
        asked_for(each_series, due_at)


def claimed() -> set[str]:
    return set(Run.objects.filter(state=State.CLAIMED).values_list("series__name", flat=True))


def ended(series: Series, slot: datetime, *, seconds: float = 7.0, outcome: str = "passed") -> None:
    report = circle_report(slot, series=series.name, seconds=seconds, outcome=outcome)
    assert ingest(wire.to_json(report)).accepted


def usual_seconds(series: Series, now: datetime) -> float:
    """Return the usual duration of a run that is claimed now."""
    asked_for(series, now)
    (claim,) = claim_due(now)
    return claim.usual_seconds


def block(site: str) -> None:
    """Let every run that uses *site* wait, without a limit."""
    Site.objects.filter(name=site).update(runs_at_once=0)


@contextmanager
def claiming_locked() -> Iterator[None]:
    """Run the block while another session holds the claim lock."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.CLAIM])
            yield
            cursor.execute(
                "SELECT pg_advisory_unlock(%s)", [AdvisoryLock.CLAIM]
            )  # closing the connection releases it only later
    finally:
        other.close()


def test_the_capacity_of_an_ended_run_is_filled_at_once(db: None, tmp_path: Path, noon: datetime) -> None:
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
    """The name of the only reporter, with a queue of this test's own."""
    name = f"own-{uuid.uuid4().hex}"
    noops(2, tmp_path)
    Reporter.objects.update(name=name, capacity=1)
    yield name
    with app.connection_for_write() as broker:
        broker.SimpleQueue(Reporter(name=name).queue).queue.delete()


def sent_to(reporter: str) -> list[str]:
    """Return the runs of the first task in the queue of *reporter*."""
    with app.connection_for_write() as broker:
        message = broker.SimpleQueue(Reporter(name=reporter).queue).get(block=False)
        message.ack()
        runs, _slots = message.payload[0]
        return list(runs)


@pytest.mark.django_db(transaction=True)
def test_delivering_a_report_dispatches_the_next_run(
    own_queue: str, settings: Settings, tmp_path: Path, noon: datetime
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    first, second = Series.objects.order_by("name")
    asked_for(first, noon)
    asked_for(second, noon + SECOND)
    (claim,) = claim_due(noon + MINUTE)
    start_runs([claim.run_id], noon + MINUTE)
    spool_report(circle_report(noon, series=first.name, reporter=own_queue))
    assert deliver() == 1
    (waited,) = Run.objects.filter(series=second)
    assert waited.state == State.CLAIMED
    assert sent_to(own_queue) == [str(waited.pk)]


@pytest.mark.django_db(transaction=True)
def test_claim_freed_does_not_wait_for_another_claim(tmp_path: Path, noon: datetime) -> None:
    ask_each(noops(1, tmp_path), noon)
    with claiming_locked():
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
def test_a_large_reporter_is_served_when_an_eighth_of_its_capacity_is_free(
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


@pytest.mark.parametrize(("waiting", "claims"), [(EXTRA_DUE_RUNS, 1), (EXTRA_DUE_RUNS + 1, 0)])
def test_a_limited_number_of_waiting_runs_leaves_no_capacity_unused(
    db: None, tmp_path: Path, noon: datetime, waiting: int, claims: int
) -> None:
    stuck, free = noops(2, tmp_path)
    Reporter.objects.update(capacity=1)
    block("site-0")
    asked_for(stuck, noon, times=waiting)
    asked_for(free, noon + SECOND)
    assert len(claim_freed(noon + MINUTE)) == claims
    assert len(claim_due(noon + MINUTE)) == 1 - claims  # the tick looks further
    assert claimed() == {"noop-1"}


def test_runs_that_may_wait_long_do_not_hide_others(db: None, tmp_path: Path, noon: datetime) -> None:
    stuck, free = noops(2, tmp_path)
    block("site-0")
    asked_for(stuck, noon, times=MAX_DUE_RUNS + 1, wait_until=noon + timedelta(days=1))
    asked_for(free, noon + SECOND)
    assert len(claim_due(noon + MINUTE)) == 1
    assert claimed() == {"noop-1"}


def test_a_run_that_may_wait_long_is_claimed_when_it_is_admitted(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    asked_for(series, noon, wait_until=noon + timedelta(days=1))
    assert len(claim_freed(noon)) == 1


def test_a_full_reporter_does_not_affect_others(db: None, tmp_path: Path, noon: datetime) -> None:
    full, free = noops(2, tmp_path)
    asked_for(full, noon - MINUTE, state=State.RUNNING)
    Reporter.objects.update(capacity=1)
    Series.objects.filter(pk=free.pk).update(reporter=Reporter.objects.create(name="elsewhere", capacity=1))
    asked_for(full, noon)
    asked_for(free, noon)
    assert [claim.queue for claim in claim_freed(noon)] == ["reporter.elsewhere"]


def test_the_usual_duration_is_infinite_before_a_run_has_ended(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    asked_for(series, noon - MINUTE, state=State.MISSED)
    assert usual_seconds(series, noon) == math.inf


def test_the_usual_duration_is_that_of_the_last_ended_run(db: None, tmp_path: Path, noon: datetime) -> None:
    (series,) = noops(1, tmp_path)
    ended(series, noon - 4 * MINUTE, seconds=20.0)
    ended(series, noon - 3 * MINUTE, seconds=0.5)
    asked_for(series, noon - 2 * MINUTE, state=State.SKIPPED)
    asked_for(series, noon + MINUTE)  # in the future
    assert usual_seconds(series, noon) == pytest.approx(0.5)


def test_the_usual_duration_is_infinite_after_a_failed_run(db: None, tmp_path: Path, noon: datetime) -> None:
    (series,) = noops(1, tmp_path)
    ended(series, noon - 2 * MINUTE, seconds=20.0)
    ended(series, noon - MINUTE, seconds=0.01, outcome="failed")
    assert usual_seconds(series, noon) == math.inf


def test_a_report_of_a_future_slot_does_not_affect_the_usual_duration(
    db: None, tmp_path: Path, noon: datetime
) -> None:
    (series,) = noops(1, tmp_path)
    ended(series, noon - MINUTE, seconds=3.0)
    ended(series, noon + MINUTE, seconds=50.0)
    assert usual_seconds(series, noon) == pytest.approx(3.0)


def test_a_run_that_ended_without_a_start_has_no_duration(db: None, tmp_path: Path, noon: datetime) -> None:
    """A run whose report was refused has an end and no start."""
    (series,) = noops(1, tmp_path)
    asked_for(series, noon - MINUTE, state=State.BROKEN, ended_at=noon)
    assert usual_seconds(series, noon) == math.inf


def test_a_due_run_is_claimed_once(circle: Series, noon: datetime) -> None:
    expand(noon)
    assert claim_due(noon) == []
    first = claim_due(noon + MINUTE)
    assert first == [Claim(run_id("circle", noon + MINUTE), noon + MINUTE, 1, "reporter.home")]
    assert claim_due(noon + MINUTE) == []


@pytest.mark.django_db(transaction=True)
def test_concurrent_claims_never_return_the_same_run(circle: Series, noon: datetime) -> None:
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


def test_a_claim_that_the_broker_refused_is_released_and_not_counted(circle: Series, noon: datetime) -> None:
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


def test_a_given_run_can_be_claimed_unless_its_series_is_running(circle: Series, noon: datetime) -> None:
    first = run_now(circle, who="ada", now=noon)
    assert claim_one(first, noon) == Claim(first.pk, first.slot, 1, "reporter.home")
    second = run_now(circle, who="ada", now=noon + MINUTE)
    assert claim_one(second, noon) is None
