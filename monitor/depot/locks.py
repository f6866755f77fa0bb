"""Locks of the database that guard work, not rows: one does it at a time, however many there are."""

from __future__ import annotations

from django.db import connection


def alone(lock: int, *, wait: bool = False) -> bool:
    """Whether nobody else holds *lock*, which is ours until the end of the transaction if so.

    With *wait* it always is in the end.
    """
    take = "SELECT true FROM pg_advisory_xact_lock(%s)" if wait else "SELECT pg_try_advisory_xact_lock(%s)"
    with connection.cursor() as cursor:
        cursor.execute(take, [lock])
        return bool(cursor.fetchone()[0])
