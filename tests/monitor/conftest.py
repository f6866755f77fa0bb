"""A small grid in the depot: two sites of directories on this host, one Circle series a minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from monitor.depot.engines import engine
from monitor.depot.engines.engine import Engine
from monitor.models import DayRollup, HourRollup, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from tests.monitor.depot.databases import KINDS, database

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    """One browser for all tests of a module."""
    from tests.monitor.web.pages.chromium import launched

    with launched() as browser:
        yield browser


@pytest.fixture
def noon() -> datetime:
    return NOON


@pytest.fixture
def circle(db: None, tmp_path: Path) -> Series:
    """Circle between two directories, every minute, known to the depot since noon."""
    resources = [ResourceConfig(name, f"site-of-{name}", str(tmp_path / name)) for name in ("here", "there")]
    for resource in resources:
        (tmp_path / resource.name).mkdir()
    bindings = {"ring": ["here", "there"]}
    every_minute = SeriesDefinition("circle", "circle", bindings, {"file_bytes": 1000}, "* * * * *")
    define(resources, [every_minute])
    Series.objects.update(created_at=NOON)
    return Series.objects.get()


@pytest.fixture(scope="module", params=KINDS)
def kind_of_database(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Each kind of database in turn, for all tests of a module that use it."""
    with django_db_blocker.unblock(), database(request.param):
        yield request.param


@pytest.fixture
def depot_engine(kind_of_database: str, transactional_db: None) -> Engine:
    """The engine of an empty depot, outside of any transaction."""
    for rollups in (HourRollup, DayRollup):  # views are not emptied after a test
        rollups.objects.all().delete()
    return _engine(kind_of_database)


@pytest.fixture
def quick_engine(kind_of_database: str, db: None) -> Engine:
    """The engine in a transaction that is rolled back: emptying a depot takes a second."""
    return _engine(kind_of_database)


def _engine(kind: str) -> Engine:
    current_engine = engine()
    assert current_engine.name == kind
    return current_engine


@pytest.fixture
def depot_away(django_db_blocker: DjangoDbBlocker, tmp_path: Path) -> Iterator[None]:
    """Make the database unreachable; for tests without a database."""
    place = connection.settings_dict["HOST"]
    with django_db_blocker.unblock():
        connection.close()
        connection.settings_dict["HOST"] = str(tmp_path)
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict["HOST"] = place
