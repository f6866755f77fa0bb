"""Locks of the database that guard work, not rows: one does it at a time, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from django.db import InterfaceError, OperationalError, connection

# Row by row: those behind the first that is free are not tried.
_FIRST_FREE = "SELECT lock FROM unnest(%s::bigint[]) AS lock WHERE pg_try_advisory_lock(lock) LIMIT 1"


def alone(lock: int, *, wait: bool = False) -> bool:
    """Whether nobody else holds *lock*, which is ours until the end of the transaction if so.

    With *wait* it always is in the end.
    """
    take = "SELECT true FROM pg_advisory_xact_lock(%s)" if wait else "SELECT pg_try_advisory_xact_lock(%s)"
    with connection.cursor() as cursor:
        cursor.execute(take, [lock])
        return bool(cursor.fetchone()[0])


@contextmanager
def one_of(locks: Collection[int]) -> Iterator[int | None]:
    """Hold one of *locks* that nobody else holds, for as long as the block lasts; None: all are held.

    Never waits. Not by transaction, for those begin and end within; a session that dies lets go of it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FIRST_FREE, [list(locks)])
        found = cursor.fetchone()
    try:
        yield found[0] if found else None
    finally:
        if found:
            _let_go(found[0])


def _let_go(lock: int) -> None:
    with suppress(OperationalError, InterfaceError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])
