"""Queries that give the slot of a run touch only the partition that contains it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitor.core.db import partitions
from monitor.depot.engines import engine
from monitor.models import Run, Series
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.runs.ledger import transitions
from monitor.runs.ledger.claim import claim_due, release
from monitor.runs.ledger.holds import hold, resume
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_now
from monitor.runs.worker.start_runs import start_runs
from reporters.report import run_id

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
WRITES = "RowExclusiveLock"


def written_partitions() -> set[datetime]:
    """Return the starts of the partitions of the ledger that this transaction has written to."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relation::regclass::text FROM pg_locks"
            " WHERE locktype = 'relation' AND pid = pg_backend_pid() AND mode = %s",
            [WRITES],
        )
        names = {name for (name,) in cursor.fetchall()}
    return {part.start for part in engine().partitions("monitor_run") if part.name in names}


@pytest.fixture(autouse=True)
def years(circle: Series, noon: datetime) -> None:
    partitions.create_for({noon - days * DAY for days in (100, 400, 800)})
    assert len(engine().partitions("monitor_run")) >= 4


def test_all_changes_of_a_run_write_only_its_partition(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    release(claim_due(noon))
    (claim,) = claim_due(noon)
    assert len(start_runs([claim.run_id], noon, [claim.slot])) == 1
    reap(noon + DAY)  # its lease has expired
    claim_due(noon + DAY)
    series = Scope(HoldKind.SERIES, circle.name)
    hold(series, HoldMode.PAUSE, who="ada", why="a test", now=noon + DAY)
    assert Run.objects.get().state == State.SKIPPED
    resume(series, who="ada", why="a test", now=noon + DAY)
    run_now(circle, who="ada", now=noon + DAY)
    (run,) = Run.objects.filter(state=State.EXPECTED)
    transitions.move(Run.objects.all(), [run.pk], State.PASSED, cause="it ran", slots=[run.slot])
    assert written_partitions() == {noon.replace(day=1, hour=0)}


def test_a_run_without_its_slot_is_searched_in_recent_partitions_first(
    circle: Series, noon: datetime
) -> None:
    now, long_ago = noon + DAY, noon - 400 * DAY
    for slot in (noon, long_ago):
        Run(id=run_id("circle", slot), series=circle, slot=slot, due_at=slot).save(force_insert=True)
    assert all(start > now - 62 * DAY for start in partitions_read(noon, now))
    assert long_ago.replace(day=1, hour=0) in partitions_read(long_ago, now)
    assert Run.objects.find(run_id("circle", noon + MINUTE), now) is None


def partitions_read(slot: datetime, now: datetime) -> set[datetime]:
    """Return the starts of the partitions read to find the run of *slot*."""
    with CaptureQueriesContext(connection) as queries:
        run = Run.objects.find(run_id("circle", slot), now)
    assert run is not None
    assert run.slot == slot
    with connection.cursor() as cursor:
        plans = []
        for query in queries:
            cursor.execute("EXPLAIN " + query["sql"])
            plans += [line for (line,) in cursor.fetchall()]
    parts = {part.start for part in engine().partitions("monitor_run") if part.name in " ".join(plans)}
    assert parts
    return parts
