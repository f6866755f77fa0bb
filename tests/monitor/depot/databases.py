"""Run tests on a database of each engine instead of the database of the tests."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from psycopg import sql

from monitor.core.db.timescale_extension import create, extension
from monitor.core.env import parse_database_url
from monitor.operations.embedded.clean import clean
from monitor.operations.embedded.postgres import PostgreSQL
from monitor.operations.embedded.timescale import VARIABLE
from monitor.operations.supervisor import Supervisor
from tests.databases import copy_database, in_postgres, using_settings

PLAIN, TIMESCALE, APACHE = "PostgreSQL", "TimescaleDB", "TimescaleDB, Apache licence"
# The Apache engine combines statements of the other two and needs a server of its own.
KINDS = (PLAIN, TIMESCALE, pytest.param(APACHE, marks=pytest.mark.nightly))
HOW_TO_GET_IT = (
    f"the server of the tests has no usable TimescaleDB: set {VARIABLE} to a directory with its "
    "files for PostgreSQL 18, or DATABASE_URL to a server that has loaded it"
)


@contextlib.contextmanager
def database(kind: str) -> Iterator[None]:
    """Have Django use a database of *kind* during the block; skip the test where there is none."""
    if kind == PLAIN:
        yield
        return
    with copy():
        if (kind == APACHE) == create().is_apache:
            _migrate()
            yield
            return
    with _server_of_its_own(kind) as url, using_settings(parse_database_url(url)):
        call_command("migrate", verbosity=0)
        _migrate()
        yield


@contextlib.contextmanager
def copy() -> Iterator[None]:
    """Have Django use a copy of the test database on a server with TimescaleDB; skip where there is none."""
    if not extension().is_usable:
        pytest.skip(HOW_TO_GET_IT)
    with _copy() as name, using_settings({"NAME": name}):
        yield


def _migrate() -> None:
    call_command("depot", "migrate-to-timescale", stdout=io.StringIO(), stderr=io.StringIO())


@contextlib.contextmanager
def _copy() -> Iterator[str]:
    """Copy the test database and yield the name of the copy."""
    original = connection.settings_dict["NAME"]
    name = f"{original}_timescale"
    copy_database(original, name)
    try:
        yield name
    finally:
        # Background workers of TimescaleDB keep sessions there.
        in_postgres("DROP DATABASE {} WITH (FORCE)", sql.Identifier(name))


@contextlib.contextmanager
def _server_of_its_own(kind: str) -> Iterator[str]:
    """Start a server with the Apache licence, which applies to a whole server, and yield its URL."""
    if kind != APACHE or not os.environ.get(VARIABLE):
        pytest.skip(f"the server of the tests has another licence than {kind!r}, and {VARIABLE} is not set")
    with tempfile.TemporaryDirectory(prefix="gridcast-tests-") as directory:
        Path(directory).chmod(0o755)  # as root PostgreSQL runs as another user, which needs access
        var = Path(directory) / "var"
        server = PostgreSQL(var, durable=False, timescaledb=Path(os.environ[VARIABLE]))
        supervisor = Supervisor(
            [server.service()], status_file=var / "run" / "supervisor.json", log_dir=var / "log"
        )
        with contextlib.ExitStack() as stack:
            stack.callback(clean, var)
            stack.enter_context(supervisor.running(up_within_seconds=300.0))
            with psycopg.connect(server.url, autocommit=True) as session:
                session.execute("ALTER SYSTEM SET timescaledb.license = 'apache'")
                session.execute("SELECT pg_reload_conf()")
            yield server.url
