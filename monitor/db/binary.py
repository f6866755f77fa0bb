"""Statements whose parameters travel beside them, and answers that come, in the database's own format.

Django writes parameters into the text of a statement, which for arrays is most of the work: a list of five
hundred times is put into one in 1.4 ms, and goes beside it in 0.2 ms. Parameters are named ``%b``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from django.db import connection

PREPARED_AFTER = 3  # times that a connection sends the same: it is read and planned no more


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """What is executed in it is sent together and answered together, at its end: nobody may ask for results
    before, nor copy."""
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


@contextlib.contextmanager
def cursor() -> Iterator[psycopg.Cursor[Any]]:
    """A cursor of Django's connection, and of its transaction; errors are Django's."""
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    connection.connection.prepare_threshold = PREPARED_AFTER  # Django's own statements never are
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as opened:
        yield opened


def row(query: str, parameters: Mapping[str, object]) -> Any:
    """The one row that *query* gives, in binary: Django's own cursors know texts only."""
    with cursor() as opened:
        return opened.execute(query.encode(), parameters, binary=True).fetchone()
