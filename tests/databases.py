"""Databases beside the one of the tests, and the locks of its sessions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
from django.db import connection, connections
from psycopg import sql


def postgres_session(dbname: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
    """Open an autocommit session in the database *dbname* of the server of the tests."""
    options = {**connection.get_connection_params(), "dbname": dbname}
    options = {
        key: options[key] for key in ("dbname", "user", "password", "host", "port") if options.get(key)
    }
    return psycopg.connect(**options, autocommit=True)


def in_postgres(statement: str, *names: sql.Composable) -> None:
    """Execute a statement about databases from the database postgres."""
    with postgres_session() as session:
        session.execute(sql.SQL(statement).format(*names))


def copy_database(original: str, name: str) -> None:
    """Copy the database *original* to *name*; sessions that threads of earlier tests left in it are ended."""
    connections.close_all()
    in_postgres(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = {}",
        sql.Literal(original),
    )
    in_postgres("CREATE DATABASE {} TEMPLATE {}", sql.Identifier(name), sql.Identifier(original))


@contextlib.contextmanager
def using_settings(settings: dict[str, object]) -> Iterator[None]:
    """Have Django use another database with these *settings*."""
    before = dict(connection.settings_dict)
    connections.close_all()
    connection.settings_dict.update(settings)
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict.update(before)


def blocks_another_session() -> bool:
    """Return whether another session waits for a lock that the session of this thread has."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY"
            " (pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])
