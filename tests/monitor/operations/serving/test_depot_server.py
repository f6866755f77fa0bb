"""A command of a stopped service has the embedded PostgreSQL run while it needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from monitor.operations.embedded import purpose, urls
from monitor.operations.embedded.clean import clean
from monitor.operations.serving.depot_server import depot_server


@pytest.fixture
def var(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "var"
    yield directory
    clean(directory)


def answers(var: Path) -> bool:
    try:
        psycopg.connect(urls.postgres_url(var), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def test_postgres_runs_during_the_block_only_and_a_block_within_shares_it(var: Path) -> None:
    purpose.claim(var, purpose.DEMO)
    with depot_server(var, {}):
        assert answers(var)
        with depot_server(var, {}):
            assert answers(var)
        assert answers(var)
    assert not answers(var)


def test_nothing_is_started_for_a_named_server_or_without_state(var: Path) -> None:
    with depot_server(var, {}):
        assert not var.exists()
    purpose.claim(var, purpose.DEMO)
    with depot_server(var, {"DATABASE_URL": "postgresql://db.example.org/gridcast"}):
        assert not answers(var)
