"""Engines: what is said of the depot here holds on every kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from monitor.depot.engines import engine
from monitor.depot.engines.engine import Engine
from monitor.models import DayRollup, HourRollup
from tests.monitor.depot.databases import KINDS, database


@pytest.fixture(scope="module", params=KINDS)
def kind_of_database(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """One kind after the other, for all tests of a module that ask for it."""
    with django_db_blocker.unblock(), database(request.param):
        yield request.param


@pytest.fixture
def depot_engine(kind_of_database: str, transactional_db: None) -> Engine:
    """The engine of a depot that is empty, outside of any transaction."""
    for rollups in (HourRollup, DayRollup):  # views are not emptied after a test
        rollups.objects.all().delete()
    return _engine(kind_of_database)


@pytest.fixture
def quick_engine(kind_of_database: str, db: None) -> Engine:
    """The same in a transaction, which nobody commits: to empty a depot takes a second."""
    return _engine(kind_of_database)


def _engine(kind: str) -> Engine:
    found = engine()
    assert found.name == kind
    return found
