"""No room in the depot: reports are refused while there still is some, and taken again by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from psycopg.errors import DiskFull, lookup
from pytest_django.fixtures import Settings

from monitor import health
from monitor.ingest.disk_guard import (
    ASKED_EVERY_SECONDS,
    DepotFull,
    Gauge,
    Room,
    gauge,
    measured,
    refuse_without_room,
    told_when_full,
)

MIB = 1024**2


@pytest.fixture(autouse=True)
def asked_anew(db: None) -> Iterator[None]:
    """Nothing is remembered from before, and nothing of what is said here for those who come after."""
    gauge.forget()
    yield
    gauge.forget()


@pytest.fixture
def without_room(settings: Settings, tmp_path: Path) -> None:
    """The disk of the depot has less than what is kept in reserve."""
    settings.GRIDCAST_DEPOT_DIRECTORY = tmp_path
    settings.GRIDCAST_DEPOT_RESERVE_BYTES = 2**62


@pytest.mark.parametrize(
    ("free", "suffices"), [(257 * MIB, True), (256 * MIB, False), (1, False), (0, False), (-5, False)]
)
def test_more_than_the_reserve_has_to_be_free(free: int, suffices: bool) -> None:
    assert Room(free, 256 * MIB).suffices is suffices


def test_what_is_free_is_asked_for_once_in_a_while() -> None:
    now, answers = [0.0], iter([Room(5, 1), Room(4, 1), None])
    told = Gauge(lambda: next(answers), clock=lambda: now[0])
    seen = []
    for moment in (0.0, ASKED_EVERY_SECONDS - 0.1, ASKED_EVERY_SECONDS, 3 * ASKED_EVERY_SECONDS):
        now[0] = moment
        seen.append(told.room())
    assert seen == [Room(5, 1), Room(5, 1), Room(4, 1), None]


def test_the_disk_of_the_data_is_looked_at(settings: Settings, tmp_path: Path) -> None:
    settings.GRIDCAST_DEPOT_DIRECTORY = tmp_path
    room = measured()
    assert room is not None
    assert room.free_bytes > 0


@pytest.mark.parametrize("directory", [None, Path("/no/such/directory")])
def test_where_nobody_knows_nothing_is_refused(settings: Settings, directory: Path | None) -> None:
    settings.GRIDCAST_DEPOT_DIRECTORY = directory
    assert measured() is None
    refuse_without_room()


def test_a_budget_is_held_against_the_size_of_the_database(settings: Settings) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        (size,) = cursor.fetchone()
    settings.GRIDCAST_DEPOT_RESERVE_BYTES = 16 * MIB
    settings.GRIDCAST_DEPOT_MAX_BYTES = size + 64 * MIB
    refuse_without_room()
    settings.GRIDCAST_DEPOT_MAX_BYTES = size + 8 * MIB
    gauge.forget()
    with pytest.raises(DepotFull, match=r"left, and 16\.8 MB are its reserve"):
        refuse_without_room()


def test_a_disk_that_postgresql_finds_full_is_no_room_and_is_not_tried_again_at_once() -> None:
    with pytest.raises(DepotFull, match="could not extend file"), told_when_full():
        raise OperationalError("could not extend file") from DiskFull("could not extend file")
    with pytest.raises(DepotFull):
        refuse_without_room()
    gauge.forget()
    refuse_without_room()


def test_a_depot_that_is_away_is_not_full() -> None:
    with pytest.raises(OperationalError) as raised, told_when_full():
        raise OperationalError("shutting down") from lookup("57P01")("shutting down")
    assert not isinstance(raised.value, DepotFull)


@pytest.mark.usefixtures("without_room")
def test_every_page_says_that_no_reports_are_taken(noon: datetime) -> None:
    (problem,) = health.problems(noon)
    assert problem.part == "depot"
    assert problem.text.startswith("No reports are taken: the depot has ")
    assert problem.text.endswith(" They wait in the reporters' spools.")
