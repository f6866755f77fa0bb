"""Plain PostgreSQL: native partitions by time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import connection

from monitor.db import partitions
from monitor.db.advisory_locks import RETRY_LOCK_TIMEOUT_MILLISECONDS, transaction_lock_timeout
from monitor.depot.engines import rollup_tables
from monitor.depot.engines.engine import Hours, Part

_LISTED = """
SELECT child.relname, pg_get_expr(child.relpartbound, child.oid), pg_total_relation_size(child.oid)
FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = %s::regclass
"""
_BOUNDS = re.compile(r"FROM \('([^']+)'\) TO \('([^']+)'\)")


class Plain:
    name = "PostgreSQL"
    sparse = rollup_tables.SPARSE  # samples of a day, up to which no hours are kept of it

    def prepare_ahead(self, now: datetime) -> None:
        partitions.create_ahead(now)

    def parts(self, table: str) -> list[Part]:
        with connection.cursor() as cursor:
            cursor.execute(_LISTED, [table])
            found = [Part(table, name, *_bounds(bounds), size) for name, bounds, size in cursor.fetchall()]
        return sorted(found, key=lambda part: part.start)

    def drop(self, part: Part, is_needed: Callable[[], bool]) -> bool:
        """That of a partition locks the table that it is of. Detached first it would not; but who is killed
        would leave it behind, and meanwhile nobody sees, or can store, what is of its time."""
        return drop_with(f"DROP TABLE {part.name}", [], part, is_needed)

    def discard(self, start: datetime, end: datetime) -> None:
        """They are replaced as quickly."""

    def roll(self, stale: Sequence[Hours]) -> None:
        rollup_tables.roll(stale, sparse=self.sparse)


def drop_with(
    statement: str, told: Sequence[str | datetime], part: Part, is_needed: Callable[[], bool]
) -> bool:
    """Drop *part* by *statement*, unless it *is_needed* when nobody can write into it any more."""
    with transaction_lock_timeout(RETRY_LOCK_TIMEOUT_MILLISECONDS), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {part.name} IN SHARE MODE")
        if is_needed():
            return False
        cursor.execute(statement, told)
        return True


def _bounds(text: str) -> tuple[datetime, datetime]:
    found = _BOUNDS.search(text)
    if found is None:
        raise ValueError(f"expected the bounds of a partition, got {text!r}")
    start, end = found.groups()
    return datetime.fromisoformat(start), datetime.fromisoformat(end)
