"""Reports are refused while only the disk reserve is left, and accepted again when there is space."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from psycopg.errors import DiskFull, lookup
from pytest_django.fixtures import Settings

from monitor import health
from monitor.runs.ingest.disk_guard import (
    MEASURE_EVERY_SECONDS,
    DepotFull,
    FreeSpace,
    FreeSpaceGauge,
    gauge,
    measure_space,
    raising_depot_full,
    require_space,
)

MIB = 1024**2


@pytest.fixture(autouse=True)
def measured_again(db: None) -> Iterator[None]:
    """Let no cached measurement pass from test to test."""
    gauge.reset()
    yield
    gauge.reset()


@pytest.fixture
def without_space(settings: Settings, tmp_path: Path) -> None:
    """Make the reserve larger than the free space of the disk."""
    settings.GRIDCAST_DEPOT_DIRECTORY = tmp_path
    settings.GRIDCAST_DEPOT_RESERVE_BYTES = 2**62


@pytest.mark.parametrize(
    ("free", "suffices"), [(257 * MIB, True), (256 * MIB, False), (1, False), (0, False), (-5, False)]
)
def test_reports_need_more_free_space_than_the_reserve(free: int, suffices: bool) -> None:
    assert FreeSpace(free, 256 * MIB).suffices is suffices


def test_free_space_is_measured_once_in_a_while() -> None:
    now, answers = [0.0], iter([FreeSpace(5, 1), FreeSpace(4, 1), None])
    cached = FreeSpaceGauge(lambda: next(answers), clock=lambda: now[0])
    measured = []
    for moment in (0.0, MEASURE_EVERY_SECONDS - 0.1, MEASURE_EVERY_SECONDS, 3 * MEASURE_EVERY_SECONDS):
        now[0] = moment
        measured.append(cached.space())
    assert measured == [FreeSpace(5, 1), FreeSpace(5, 1), FreeSpace(4, 1), None]


def test_free_space_of_the_disk_is_measured(settings: Settings, tmp_path: Path) -> None:
    settings.GRIDCAST_DEPOT_DIRECTORY = tmp_path
    space = measure_space()
    assert space is not None
    assert space.free_bytes > 0


@pytest.mark.parametrize("directory", [None, Path("/no/such/directory")])
def test_no_report_is_refused_where_free_space_is_unknown(settings: Settings, directory: Path | None) -> None:
    settings.GRIDCAST_DEPOT_DIRECTORY = directory
    assert measure_space() is None
    require_space()


def test_a_size_limit_counts_the_size_of_the_database(settings: Settings) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        (size,) = cursor.fetchone()
    settings.GRIDCAST_DEPOT_RESERVE_BYTES = 16 * MIB
    settings.GRIDCAST_DEPOT_MAX_BYTES = size + 64 * MIB
    require_space()
    settings.GRIDCAST_DEPOT_MAX_BYTES = size + 8 * MIB
    gauge.reset()
    with pytest.raises(DepotFull, match=r"free and keeps 16\.8 MB in reserve"):
        require_space()


def test_a_disk_full_error_of_postgresql_refuses_reports_for_a_while() -> None:
    with pytest.raises(DepotFull, match="could not extend file"), raising_depot_full():
        raise OperationalError("could not extend file") from DiskFull("could not extend file")
    with pytest.raises(DepotFull):
        require_space()
    gauge.reset()
    require_space()


def test_an_unavailable_depot_is_not_full() -> None:
    with pytest.raises(OperationalError) as raised, raising_depot_full():
        raise OperationalError("shutting down") from lookup("57P01")("shutting down")
    assert not isinstance(raised.value, DepotFull)


@pytest.mark.usefixtures("without_space")
def test_the_health_check_reports_that_reports_are_refused(noon: datetime) -> None:
    (problem,) = health.problems(noon)
    assert problem.component == "depot"
    assert problem.text.startswith("Reports are refused: the depot has ")
    assert problem.text.endswith(" They wait in the reporters' spools.")
