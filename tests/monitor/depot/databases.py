"""A database of each kind that the depot knows, empty, in the place of the one that tests are run in."""

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
from django.db import connection, connections
from psycopg import sql

from monitor.db.timescale_extension import create, extension
from monitor.embedded.clean import clean
from monitor.embedded.postgres import PostgreSQL
from monitor.embedded.timescale import VARIABLE
from monitor.env import parse_database_url
from monitor.supervisor import Supervisor

PLAIN, TIMESCALE, APACHE = KINDS = ("PostgreSQL", "TimescaleDB", "TimescaleDB, Apache licence")
HOW_TO_GET_IT = (
    f"the server of the tests has no TimescaleDB that could be used: set {VARIABLE} to a directory with its "
    "files for PostgreSQL 18, or DATABASE_URL to a server that has loaded it"
)


@contextlib.contextmanager
def database(kind: str) -> Iterator[None]:
    """Have Django use a database of *kind* for as long as the block lasts; skips where that cannot be had."""
    if kind == PLAIN:
        yield
        return
    with copy():
        if (kind == APACHE) == create().is_apache:
            _migrate()
            yield
            return
    with _server_of_its_own(kind) as url, in_its_place(parse_database_url(url)):
        call_command("migrate", verbosity=0)
        _migrate()
        yield


@contextlib.contextmanager
def copy() -> Iterator[None]:
    """Have Django use a copy of the database of the tests, on a server with TimescaleDB; skips likewise."""
    if not extension().is_usable:
        pytest.skip(HOW_TO_GET_IT)
    with _copy() as name, in_its_place({"NAME": name}):
        yield


def _migrate() -> None:
    call_command("depot", "migrate-to-timescale", stdout=io.StringIO(), stderr=io.StringIO())


@contextlib.contextmanager
def _copy() -> Iterator[str]:
    """The name of a copy of the database of the tests."""
    original = connection.settings_dict["NAME"]
    name = f"{original}_timescale"
    connections.close_all()
    in_postgres(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}", sql.Literal(original)
    )
    in_postgres("CREATE DATABASE {} TEMPLATE {}", sql.Identifier(name), sql.Identifier(original))
    try:
        yield name
    finally:
        # Workers of TimescaleDB keep sessions there.
        in_postgres("DROP DATABASE {} WITH (FORCE)", sql.Identifier(name))


def in_postgres(statement: str, *names: sql.Composable) -> None:
    """Do something to databases, from one that is always there."""
    options = {**connection.get_connection_params(), "dbname": "postgres"}
    options = {
        key: options[key] for key in ("dbname", "user", "password", "host", "port") if options.get(key)
    }
    with psycopg.connect(**options, autocommit=True) as session:
        session.execute(sql.SQL(statement).format(*names))


@contextlib.contextmanager
def _server_of_its_own(kind: str) -> Iterator[str]:
    """The address of a server with the other licence, which all databases of a server have."""
    if kind != APACHE or not os.environ.get(VARIABLE):
        pytest.skip(f"the server of the tests has another licence than {kind!r}, and {VARIABLE} is not set")
    with tempfile.TemporaryDirectory(prefix="gridcast-tests-") as directory:
        Path(directory).chmod(0o755)  # as root PostgreSQL runs as somebody else, who must get at its data
        var = Path(directory) / "var"
        server = PostgreSQL(var, durable=False, timescaledb=Path(os.environ[VARIABLE]))
        supervisor = Supervisor(
            [server.service()], status_file=var / "run" / "supervisor.json", log_dir=var / "log"
        )
        with contextlib.ExitStack() as stack:
            stack.callback(clean, var)
            stack.enter_context(supervisor.running(up_within_seconds=60.0))
            with psycopg.connect(server.url, autocommit=True) as session:
                session.execute("ALTER SYSTEM SET timescaledb.license = 'apache'")
                session.execute("SELECT pg_reload_conf()")
            yield server.url


@contextlib.contextmanager
def in_its_place(settings: dict[str, object]) -> Iterator[None]:
    """Have Django use another database: what *settings* says differs."""
    before = dict(connection.settings_dict)
    connections.close_all()
    connection.settings_dict.update(settings)
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict.update(before)
