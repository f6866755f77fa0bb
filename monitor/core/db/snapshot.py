"""Read many rows as they were at one instant while other transactions write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

# Each fetch from a cursor is a statement; the first one may sort millions of rows. The limit of the web
# server (``monitor.core.statement_timeout``) is for requests that a user waits for.
STATEMENT_TIMEOUT_SECONDS = 600
# A long snapshot delays retention and vacuum, so PostgreSQL ends the session of a reader that went away.
IDLE_TIMEOUT_SECONDS = 60


@contextmanager
def snapshot() -> Iterator[None]:
    """Run the block in a read-only transaction with a single snapshot, or in the caller's transaction.

    Raises:
        OperationalError, InterfaceError: the block read nothing for ``IDLE_TIMEOUT_SECONDS``, and the server
            ended the session.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_TIMEOUT_SECONDS}s'")
            cursor.execute(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT_SECONDS}s'")
        yield
