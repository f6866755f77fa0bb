"""Connections that the server has ended are replaced; those that work are asked nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper

from monitor.core.db import binary
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def backend() -> Iterator[int]:
    """Yield the process of a connection at the start of the next request."""
    (pid,) = binary.row("SELECT pg_backend_pid()", {})
    connection.close_if_unusable_or_obsolete()
    yield pid
    connection.close()


def test_a_connection_that_the_server_has_ended_is_replaced(backend: int) -> None:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
            assert eventually(lambda: not _runs(cursor, backend))
    finally:
        other.close()
    (replaced,) = binary.row("SELECT pg_backend_pid()", {})
    assert replaced != backend


def _runs(cursor: CursorWrapper, backend: int) -> bool:
    cursor.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [backend])
    return cursor.fetchone() is not None


def test_a_connection_that_works_is_asked_nothing_before_the_first_statement(backend: int) -> None:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            last = "SELECT query FROM pg_stat_activity WHERE pid = %s"
            with binary.cursor():
                cursor.execute(last, [backend])
                assert cursor.fetchone() == ("SELECT pg_backend_pid()",)
    finally:
        other.close()
    assert binary.row("SELECT pg_backend_pid()", {}) == (backend,)
