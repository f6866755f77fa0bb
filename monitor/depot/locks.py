"""Locks of the database that guard work, not rows: one does it at a time, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import InterfaceError, OperationalError, connection

PATIENCE_MILLISECONDS = 1_000


def alone(lock: int, *, wait: bool = False) -> bool:
    """Whether nobody else holds *lock*, which is ours until the end of the transaction if so.

    With *wait* it always is in the end.
    """
    take = "SELECT true FROM pg_advisory_xact_lock(%s)" if wait else "SELECT pg_try_advisory_xact_lock(%s)"
    with connection.cursor() as cursor:
        cursor.execute(take, [lock])
        return bool(cursor.fetchone()[0])


@contextmanager
def held(lock: int) -> Iterator[bool]:
    """Whether nobody else holds *lock*, which is ours for as long as the block lasts if so.

    Not by transaction, for those begin and end within; a session that dies lets go of it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        is_ours = bool(cursor.fetchone()[0])
    try:
        yield is_ours
    finally:
        if is_ours:
            _let_go(lock)


@contextmanager
def impatient() -> Iterator[None]:
    """What somebody else keeps locked is given up soon: who waits for a lock keeps others waiting behind him.

    Raises:
        OperationalError: it was locked (SQLSTATE 55P03).
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {PATIENCE_MILLISECONDS}")
    try:
        yield
    finally:
        with suppress(OperationalError, InterfaceError), connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def _let_go(lock: int) -> None:
    with suppress(OperationalError, InterfaceError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])
