"""Transactions that wait for locks: the event that tests of concurrency wait for."""

from __future__ import annotations

from django.db import connection

_WAITERS = """
WITH RECURSIVE waiter (pid) AS (
    SELECT pg_backend_pid()
    UNION
    SELECT wanted.pid FROM pg_locks AS wanted JOIN waiter ON waiter.pid = ANY (pg_blocking_pids(wanted.pid))
)
SELECT count(*) - 1 FROM waiter
"""


def waiting() -> int:
    """Return how many transactions wait for locks of this one, directly or indirectly."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITERS)
        return int(cursor.fetchone()[0])
