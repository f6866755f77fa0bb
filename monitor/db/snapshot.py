"""Reading very much as it was at one instant, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

# Nobody waits for who reads but retention, and vacuum: who asks for nothing more for so long has gone away,
# or might as well have.
PATIENCE_SECONDS = 60


@contextmanager
def snapshot() -> Iterator[None]:
    """What is read in the block is all of one instant; nothing can be written in it. Where the caller has a
    transaction it is that one's.

    Raises:
        OperationalError, InterfaceError: nothing was read for ``PATIENCE_SECONDS``, and the database has
            ended the session.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{PATIENCE_SECONDS}s'")
        yield
