"""A state directory that is removed with everything that belongs to it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

from monitor.operations.embedded.clean import clean
from monitor.operations.supervisor import Service, Supervisor

UP_WITHIN_SECONDS = 300.0


@pytest.fixture
def var(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "var"
    yield directory
    clean(directory)


def supervised(var: Path, *services: Service) -> AbstractContextManager[Supervisor]:
    supervisor = Supervisor(services, status_file=var / "run" / "supervisor.json", log_dir=var / "log")
    return supervisor.running(up_within_seconds=UP_WITHIN_SECONDS)


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    """Execute *statement*; return the rows of a query, none otherwise."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
