"""Run statements whose parameters and results use PostgreSQL's binary format, through Django's connection.

Django writes parameters into the text of a statement. For arrays that is most of the work: interpolating a
list of 500 timestamps takes 1.4 ms, sending it beside the statement 0.2 ms. Placeholders are ``%b``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from django.db import connection

PREPARE_THRESHOLD = 3  # executions of a statement on one connection before it is prepared


@contextlib.contextmanager
def pipeline() -> Iterator[None]:
    """Send the statements of the block without waiting for each result.

    The block must neither fetch rows nor run COPY.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


@contextlib.contextmanager
def cursor() -> Iterator[psycopg.Cursor[Any]]:
    """Open a psycopg cursor in Django's connection and transaction; errors are Django's."""
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    connection.connection.prepare_threshold = PREPARE_THRESHOLD  # Django never prepares its own statements
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as opened:
        yield opened


def row(query: str, parameters: Mapping[str, object]) -> Any:
    """Return the only row of *query* in binary format; Django's cursors read results as text."""
    with cursor() as opened:
        return opened.execute(query.encode(), parameters, binary=True).fetchone()
