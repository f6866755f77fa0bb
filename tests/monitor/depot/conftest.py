"""Engines: what is said of rollups here holds on every kind of database."""

from __future__ import annotations

import pytest

from monitor.depot.engines import engine
from monitor.depot.engines.base import Engine


@pytest.fixture(params=["PostgreSQL"])
def depot_engine(request: pytest.FixtureRequest, transactional_db: None) -> Engine:
    """The engine of a depot that is empty, one after the other."""
    found = engine()
    assert found.name == request.param
    return found
