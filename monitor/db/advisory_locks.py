"""Locks of the database that guard work, not rows: one does it at a time, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction

PATIENCE_MILLISECONDS = 1_000
YIELDING_MILLISECONDS = 300  # well before PostgreSQL looks for deadlocks, and ends one of two: after a second
YIELDS = 20
_IS_LOCKED = "55P03"  # SQLSTATE
Done = TypeVar("Done")


def alone(lock: int, *, wait: bool = False) -> bool:
    """Whether nobody else holds *lock*, which is ours until the end of the transaction if so.

    With *wait* it always is in the end.
    """
    take = "SELECT true FROM pg_advisory_xact_lock(%s)" if wait else "SELECT pg_try_advisory_xact_lock(%s)"
    with connection.cursor() as cursor:
        cursor.execute(take, [lock])
        return bool(cursor.fetchone()[0])


@contextmanager
def held(lock: int, *, wait: bool = False) -> Iterator[bool]:
    """Whether nobody else holds *lock*, which is ours for as long as the block lasts if so.

    With *wait* it always is in the end. Not by transaction, for those begin and end within; a session that
    dies lets go of it.
    """
    take = "SELECT true FROM pg_advisory_lock(%s)" if wait else "SELECT pg_try_advisory_lock(%s)"
    with connection.cursor() as cursor:
        cursor.execute(take, [lock])
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


@contextmanager
def impatiently(milliseconds: int) -> Iterator[None]:
    """A transaction, or a part of the caller's, which waits so long for a lock; raises as ``impatient``."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {milliseconds}")
        yield


def says_locked(error: OperationalError) -> bool:
    """Whether it is that of ``impatient``, and no other."""
    return getattr(error.__cause__, "sqlstate", None) == _IS_LOCKED


def yielding(work: Callable[[], Done]) -> Done:
    """What *work* comes to: it locks what reports that come lock as well, in whatever order.

    It waits for no lock for long, but lets go of its own and begins anew, in a transaction or a part of the
    caller's. So of those who wait for each other it is never the reports that are given up.
    """
    for _ in range(YIELDS):
        try:
            with impatiently(YIELDING_MILLISECONDS):
                return work()
        except OperationalError as error:
            if not says_locked(error):
                raise
    with transaction.atomic():
        return work()


def _let_go(lock: int) -> None:
    with suppress(OperationalError, InterfaceError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])
