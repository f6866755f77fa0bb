"""Migrating a depot in use to TimescaleDB loses nothing, wherever it is interrupted."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.executor import MigrationExecutor
from pytest_django.plugin import DjangoDbBlocker

from monitor.core.db.advisory_locks import AdvisoryLock
from monitor.core.db.timescale_extension import Extension, TimescaleUnavailable, extension
from monitor.depot import migrate_to_timescale
from monitor.depot.engines import engine
from monitor.models import DayRollup, RawReport, Sample, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.builders import circle_report
from tests.monitor.depot.databases import PLAIN, copy
from tests.rollups import roll_all

DAY = timedelta(days=1)
REPORTS = 6  # one a month
AllRows = tuple[list[tuple[object, ...]], list[tuple[object, ...]]]


def report(slot: datetime) -> None:
    assert ingest(wire.to_json(circle_report(slot))).accepted


@pytest.fixture
def plain_copy(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), copy():
        yield


@pytest.fixture
def depot(plain_copy: None, transactional_db: None, noon: datetime) -> datetime:
    """Store some months until noon in a plain depot on a server with TimescaleDB."""
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    define(resources, [SeriesDefinition("circle", "circle", {"ring": ["here", "there"]})])
    for months in range(REPORTS):
        report(noon - 30 * months * DAY)
    return noon


def all_rows() -> AllRows:
    """Return all samples and raw reports."""
    stored = Sample.objects.order_by("metric_id", "time").values_list()
    raw = RawReport.objects.order_by("run_id", "slot").values_list("run_id", "slot", "packed")
    return list(stored), [(run, slot, bytes(packed)) for run, slot, packed in raw]


class Interrupting:
    """Records the reported steps and calls a function at the step *at*."""

    def __init__(self, at: int, action: Callable[[], None]) -> None:
        self.steps: list[str] = []
        self._at, self._action = at, action

    def __call__(self, step: str) -> None:
        self.steps.append(step)
        if len(self.steps) == self._at:
            self._action()


def test_a_migrated_depot_has_all_rows_and_rollups(depot: datetime) -> None:
    roll_all()
    before, days = all_rows(), list(DayRollup.objects.order_by("metric_id", "bucket").values_list())
    assert engine().name == PLAIN
    assert migrate_to_timescale.migrate(lambda _: None)
    assert engine().name != PLAIN
    assert all_rows() == before
    assert list(DayRollup.objects.order_by("metric_id", "bucket").values_list()) == days
    assert not migrate_to_timescale.migrate(lambda _: None)


@pytest.mark.parametrize("at", [1, 3, 2 * REPORTS])
def test_changes_during_the_migration_are_migrated(depot: datetime, at: int) -> None:
    oldest = depot - 30 * (REPORTS - 1) * DAY
    expected: list[AllRows] = []

    def meanwhile() -> None:
        report(depot + DAY)
        report(oldest + timedelta(hours=1))
        Sample.objects.filter(time=oldest).update(value=77.0)
        Sample.objects.filter(time=depot).delete()
        expected.append(all_rows())

    migrate_to_timescale.migrate(Interrupting(at, meanwhile))
    assert [all_rows()] == expected


@pytest.mark.parametrize("at", [1, 4, 2 * REPORTS + 1])
def test_a_killed_migration_continues_where_it_was(depot: datetime, at: int) -> None:
    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    before = all_rows()
    output = Interrupting(at, die)
    with pytest.raises(Killed):
        migrate_to_timescale.migrate(output)
    assert all_rows() == before
    report(depot + DAY)
    before = all_rows()
    again = Interrupting(0, die)
    assert migrate_to_timescale.migrate(again)
    assert all_rows() == before
    assert not set(output.steps[:-1]) & set(again.steps)


def test_abandoning_a_migration_leaves_nothing(depot: datetime) -> None:
    before, tables = all_rows(), connection.introspection.table_names()

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate_to_timescale.migrate(Interrupting(4, die))
    assert migrate_to_timescale.abandon()
    assert (all_rows(), connection.introspection.table_names()) == (before, tables)
    assert not migrate_to_timescale.abandon()
    assert engine().name == PLAIN
    report(depot + DAY)


def test_rollups_of_deleted_samples_are_migrated(depot: datetime) -> None:
    roll_all()
    rollups = list(DayRollup.objects.order_by("metric_id", "bucket").values_list())
    Sample.objects.filter(time__lt=depot - 45 * DAY).delete()
    migrate_to_timescale.migrate(lambda _: None)
    assert list(DayRollup.objects.order_by("metric_id", "bucket").values_list()) == rollups


def test_readers_and_writers_are_not_disturbed_by_a_migration(depot: datetime) -> None:
    """No request fails, and committed rows are always visible."""
    seen: list[int] = []
    over = threading.Event()

    def use() -> None:
        minutes = 0
        while not over.is_set():
            minutes += 1
            report(depot + minutes * timedelta(minutes=1))
            seen.append(Sample.objects.count())
        connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        using = pool.submit(use)
        migrate_to_timescale.migrate(lambda _: None)
        over.set()
        using.result()
    assert seen == [8 * (REPORTS + number) for number in range(1, len(seen) + 1)]
    assert Sample.objects.count() == seen[-1]


def test_a_second_concurrent_migration_is_refused(depot: datetime) -> None:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [AdvisoryLock.MIGRATE_TO_TIMESCALE])
        with pytest.raises(migrate_to_timescale.MigrationInProgress):
            migrate_to_timescale.migrate(lambda _: None)
    finally:
        other.close()


def test_migrating_back_is_refused_and_changes_nothing(depot: datetime) -> None:
    migrate_to_timescale.migrate(lambda _: None)
    before = all_rows()
    with pytest.raises(IrreversibleError):
        MigrationExecutor(connection).migrate([("monitor", None)])
    call_command("migrate", verbosity=0)
    assert all_rows() == before


def test_the_command_reports_its_steps_and_the_status(depot: datetime) -> None:
    output = status()
    assert "is available, but not used. To use it:" in output[-2]
    assert max(map(len, output)) <= 80
    progress, printed = io.StringIO(), io.StringIO()
    call_command("depot", "migrate-to-timescale", stderr=progress, stdout=printed)
    assert "monitor_sample: 2025-10-01 to 2025-11-01" in progress.getvalue()
    assert printed.getvalue() == "The depot uses TimescaleDB.\n"
    call_command("depot", "migrate-to-timescale", stdout=printed)
    assert printed.getvalue().endswith("already.\n")
    output = status("--parts")
    assert output[0].startswith("TimescaleDB")
    assert max(map(len, output)) <= 80


def status(*options: str) -> list[str]:
    printed = io.StringIO()
    call_command("depot", "status", *options, stdout=printed)
    return printed.getvalue().splitlines()


@pytest.mark.django_db
def test_the_status_of_a_plain_depot_fits_80_columns_and_is_json(circle: Series, noon: datetime) -> None:
    report(noon)
    output = status("--parts")
    assert output[0].startswith("PostgreSQL 1")
    assert max(map(len, output)) <= 80
    assert any("1 dirty hours" in line for line in output)
    document = json.loads("\n".join(status("--json")))
    assert document["engine"] == PLAIN
    samples_table = next(table for table in document["tables"] if table["name"] == "monitor_sample")
    assert any(part["start"] == "2026-03-01T00:00:00+00:00" for part in samples_table["parts"])
    assert document["stale_hours"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_command_rebuilds_rollups(circle: Series, noon: datetime) -> None:
    report(noon)
    roll_all()
    DayRollup.objects.all().delete()
    progress, printed = io.StringIO(), io.StringIO()
    call_command("depot", "rebuild-rollups", stderr=progress, stdout=printed)
    assert DayRollup.objects.get(metric__name="total.seconds").n == 1
    assert "hours" in progress.getvalue()


HAS = Extension(available="2.29.2", is_loaded=True, installed=None, licence=None)


@pytest.mark.parametrize(
    ("has", "output"),
    [
        (replace(HAS, available=None), "'timescaledb' is not in pg_available_extensions"),
        (replace(HAS, is_loaded=False), "shared_preload_libraries = 'timescaledb'"),
        (replace(HAS, available="2.9.1"), "expected TimescaleDB 2.21 or newer, got 2.9.1"),
    ],
)
def test_an_unusable_server_says_what_to_do(has: Extension, output: str) -> None:
    assert not has.is_usable
    with pytest.raises(TimescaleUnavailable, match=output):
        has.check()


@pytest.mark.django_db
def test_without_timescaledb_the_command_fails_and_changes_nothing(circle: Series) -> None:
    if extension().is_usable:
        pytest.skip("the server of the tests has TimescaleDB")
    with pytest.raises(CommandError, match="TimescaleDB"):
        call_command("depot", "migrate-to-timescale")
    assert engine().name == PLAIN
