"""What leaves the depot: all values of all runs that ended, as they were measured."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import InterfaceError, OperationalError, connection

from monitor.charts.chart_ranges import ChartRange, begin
from monitor.depot.samples.export import ExportTimeout, export, values
from monitor.depot.samples.formats.base import UnknownFormat, Value
from monitor.ingest.service import ingest, ingest_all
from monitor.models import Run, Series
from monitor.models.run import State
from reporters import report as wire
from tests.monitor.builders import asked_for, circle_report, failed_circle_report

MINUTE = timedelta(minutes=1)


@pytest.fixture
def runs(circle: Series, noon: datetime) -> Series:
    """One that passed, one that failed, one that was missed, one that is still to come, one that passed."""
    ingest(wire.to_json(circle_report(noon)))
    ingest(wire.to_json(failed_circle_report(noon + MINUTE)))
    asked_for(circle, noon + 2 * MINUTE, state=State.MISSED)
    asked_for(circle, noon + 3 * MINUTE)
    ingest(wire.to_json(circle_report(noon + 4 * MINUTE)))
    return circle


def taken(series: Series, start: datetime | None = None, end: datetime | None = None) -> list[Value]:
    return list(values(series, start=start, end=end))


def test_every_run_that_ended_is_there_oldest_first(runs: Series, noon: datetime) -> None:
    found = taken(runs)
    slots = [value.time for value in found]
    assert slots == sorted(slots)
    outcomes = {(value.time - noon) // MINUTE: value.outcome for value in found}
    assert outcomes == {0: "passed", 1: "failed", 2: "missed", 4: "passed"}


def test_a_value_says_what_it_is_of(runs: Series, noon: datetime) -> None:
    (total,) = [one for one in taken(runs, end=noon + MINUTE) if one.name == "total.seconds"]
    assert total == Value("total.seconds", noon, noon + timedelta(seconds=7), 7.0, "seconds", "passed", 1)


def test_a_run_that_did_not_pass_has_what_it_measured_and_no_total(runs: Series, noon: datetime) -> None:
    failed = [one for one in taken(runs) if one.outcome == "failed"]
    assert {one.name for one in failed if one.value is not None} >= {"stage.init.seconds"}
    assert (failed[-1].name, failed[-1].value, failed[-1].segment) == ("total.seconds", None, 1)
    (missed,) = [one for one in taken(runs) if one.outcome == "missed"]
    assert (missed.value, missed.segment) == (None, None)


def test_a_window_ends_before_its_end(runs: Series, noon: datetime) -> None:
    found = taken(runs, start=noon + MINUTE, end=noon + 3 * MINUTE)
    assert {(value.time - noon) // MINUTE for value in found} == {1, 2}


def test_the_database_keeps_what_has_not_been_taken(runs: Series) -> None:
    rest = values(runs, start=None, end=None)
    next(rest)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors WHERE statement LIKE '%monitor_sample%'")
        assert cursor.fetchone() == (1,)
    assert len(list(rest)) > 1


@pytest.mark.django_db(transaction=True)
def test_all_of_an_export_is_of_one_instant(runs: Series, noon: datetime) -> None:
    rest = values(runs, start=None, end=None)
    found = [next(rest)]
    elsewhere(lambda: ingest(wire.to_json(circle_report(noon + 2 * MINUTE))))
    found += rest
    assert {value.outcome for value in found if value.time == noon + 2 * MINUTE} == {"missed"}
    assert {value.outcome for value in taken(runs, start=noon + 2 * MINUTE)} == {"passed"}


@pytest.mark.django_db(transaction=True)
def test_who_goes_away_leaves_nothing_open(runs: Series, noon: datetime) -> None:
    slots = [noon + number * MINUTE for number in range(5, 150)]  # more than are written at once
    ingest_all([wire.to_json(circle_report(slot)) for slot in slots])
    chunks = export(runs, "csv", start=None, label="all").chunks
    assert len([next(chunks), next(chunks)]) == 2
    assert connection.in_atomic_block
    chunks.close()  # type: ignore[attr-defined]  # as the web does
    assert not connection.in_atomic_block
    assert under_way() == 0


@pytest.mark.django_db(transaction=True)
def test_who_takes_an_export_too_slowly_does_not_get_all_of_it(runs: Series) -> None:
    chunks = export(runs, "csv", start=None, label="all", within_seconds=0).chunks
    with pytest.raises(ExportTimeout, match="in 0 s"):
        list(chunks)
    assert not connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_an_export_that_nobody_takes_holds_up_nobody(runs: Series) -> None:
    """The database ends its session, and the next who asks has another."""
    rest = values(runs, start=None, end=None)
    next(rest)
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("1min",)
        cursor.execute("SELECT pg_backend_pid()")
        (session,) = cursor.fetchone()
    elsewhere(lambda: ended(session))
    with pytest.raises((OperationalError, InterfaceError)):
        list(rest)
    assert len(taken(runs)) > 1


def elsewhere(work: Callable[[], object]) -> None:
    """Have somebody else do it, in a session of his own."""

    def apart() -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(apart).result()


def under_way() -> int:
    """How many sessions are in a transaction of which nothing is asked."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        )
        return int(cursor.fetchone()[0])


def ended(session: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [session])


def test_a_stretch_begins_where_its_runs_do(runs: Series, noon: datetime) -> None:
    now = noon + 5 * MINUTE
    newest = (ChartRange("2", "", newest=2), ChartRange("9", "", newest=9))
    assert [begin(runs, stretch, now) for stretch in newest] == [noon + 2 * MINUTE, None]
    assert begin(runs, ChartRange("1h", "", span=60 * MINUTE), now) == now - 60 * MINUTE
    assert Run.objects.count() == 5


def test_a_form_that_there_is_not_is_refused_before_anything_is_read(runs: Series) -> None:
    with pytest.raises(UnknownFormat):
        export(runs, "xlsx", start=None, label="all")
