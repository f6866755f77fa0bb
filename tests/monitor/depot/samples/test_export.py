"""An export has all values of all ended runs, unchanged."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.db import InterfaceError, OperationalError, connection

from monitor.depot.samples.export import ExportTimeout, export, values
from monitor.depot.samples.formats.base import UnknownFormat, Value
from monitor.models import Series
from monitor.models.run import State
from monitor.runs.ingest.service import ingest, ingest_all
from reporters import report as wire
from tests.monitor.builders import asked_for, circle_report, failed_circle_report

MINUTE = timedelta(minutes=1)


@pytest.fixture
def runs(circle: Series, noon: datetime) -> Series:
    """Store runs in this order: passed, failed, missed, expected, passed."""
    ingest(wire.to_json(circle_report(noon)))
    ingest(wire.to_json(failed_circle_report(noon + MINUTE)))
    asked_for(circle, noon + 2 * MINUTE, state=State.MISSED)
    asked_for(circle, noon + 3 * MINUTE)
    ingest(wire.to_json(circle_report(noon + 4 * MINUTE)))
    return circle


def exported(series: Series, start: datetime | None = None, end: datetime | None = None) -> list[Value]:
    return list(values(series, start=start, end=end))


def test_every_ended_run_is_exported_oldest_first(runs: Series, noon: datetime) -> None:
    values = exported(runs)
    slots = [value.time for value in values]
    assert slots == sorted(slots)
    outcomes = {(value.time - noon) // MINUTE: value.outcome for value in values}
    assert outcomes == {0: "passed", 1: "failed", 2: "missed", 4: "passed"}


def test_an_exported_value_has_all_columns(runs: Series, noon: datetime) -> None:
    (total,) = [value for value in exported(runs, end=noon + MINUTE) if value.name == "total.seconds"]
    assert total == Value("total.seconds", noon, noon + timedelta(seconds=7), 7.0, "seconds", "passed", 1)


def test_a_failed_run_has_its_values_and_an_empty_total(runs: Series, noon: datetime) -> None:
    failed = [value for value in exported(runs) if value.outcome == "failed"]
    assert {value.name for value in failed if value.value is not None} >= {"stage.init.seconds"}
    assert (failed[-1].name, failed[-1].value, failed[-1].segment) == ("total.seconds", None, 1)
    (missed,) = [value for value in exported(runs) if value.outcome == "missed"]
    assert (missed.value, missed.segment) == (None, None)


def test_the_end_of_the_range_is_excluded(runs: Series, noon: datetime) -> None:
    values = exported(runs, start=noon + MINUTE, end=noon + 3 * MINUTE)
    assert {(value.time - noon) // MINUTE for value in values} == {1, 2}


def test_unread_values_stay_in_the_database(runs: Series) -> None:
    rest = values(runs, start=None, end=None)
    next(rest)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors WHERE statement LIKE '%monitor_sample%'")
        assert cursor.fetchone() == (1,)
    assert len(list(rest)) > 1


@pytest.mark.django_db(transaction=True)
def test_an_export_reads_one_snapshot(runs: Series, noon: datetime) -> None:
    rest = values(runs, start=None, end=None)
    exported_values = [next(rest)]
    in_another_session(lambda: ingest(wire.to_json(circle_report(noon + 2 * MINUTE))))
    exported_values += rest
    assert {value.outcome for value in exported_values if value.time == noon + 2 * MINUTE} == {"missed"}
    assert {value.outcome for value in exported(runs, start=noon + 2 * MINUTE)} == {"passed"}


@pytest.mark.django_db(transaction=True)
def test_an_abandoned_export_closes_its_transaction(runs: Series, noon: datetime) -> None:
    slots = [noon + number * MINUTE for number in range(5, 150)]  # more than one chunk
    ingest_all([wire.to_json(circle_report(slot)) for slot in slots])
    chunks = export(runs, "csv", start=None, label="all").chunks
    assert len([next(chunks), next(chunks)]) == 2
    assert connection.in_atomic_block
    chunks.close()  # type: ignore[attr-defined]  # as Django does
    assert not connection.in_atomic_block
    assert idle_transactions() == 0


@pytest.mark.django_db(transaction=True)
def test_a_slow_reader_gets_a_timeout(runs: Series) -> None:
    chunks = export(runs, "csv", start=None, label="all", within_seconds=0).chunks
    with pytest.raises(ExportTimeout, match="in 0 s"):
        list(chunks)
    assert not connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_an_export_that_is_not_read_loses_its_session(runs: Series) -> None:
    """The server ends the idle session, and the next query opens another."""
    rest = values(runs, start=None, end=None)
    next(rest)
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("1min",)
        cursor.execute("SELECT pg_backend_pid()")
        (session,) = cursor.fetchone()
    in_another_session(lambda: ended(session))
    with pytest.raises((OperationalError, InterfaceError)):
        list(rest)
    assert len(exported(runs)) > 1


def in_another_session(work: Callable[[], object]) -> None:
    """Run *work* in another session."""

    def apart() -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(apart).result()


def idle_transactions() -> int:
    """Count the sessions that are idle in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
        )
        return int(cursor.fetchone()[0])


def ended(session: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [session])


def test_an_unknown_format_is_refused_before_reading(runs: Series) -> None:
    with pytest.raises(UnknownFormat):
        export(runs, "xlsx", start=None, label="all")
