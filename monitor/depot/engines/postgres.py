"""Run the depot on plain PostgreSQL: native partitions by time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import connection

from monitor.core.db import partitions
from monitor.core.db.advisory_locks import RETRY_LOCK_TIMEOUT_MILLISECONDS, transaction_lock_timeout
from monitor.depot.engines import rollup_tables
from monitor.depot.engines.engine import Partition, SeriesHours

_PARTITIONS = """
SELECT child.relname, pg_get_expr(child.relpartbound, child.oid), pg_total_relation_size(child.oid)
FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = %s::regclass
"""
_BOUNDS = re.compile(r"FROM \('([^']+)'\) TO \('([^']+)'\)")


class PostgresEngine:
    name = "PostgreSQL"
    sparse = rollup_tables.SPARSE  # samples of a metric: days with at most this number have no hourly rollups

    def prepare_ahead(self, now: datetime) -> None:
        partitions.create_ahead(now)

    def partitions(self, table: str) -> list[Partition]:
        with connection.cursor() as cursor:
            cursor.execute(_PARTITIONS, [table])
            rows = cursor.fetchall()
        partitions = [Partition(table, name, *_parse_bounds(bounds), size) for name, bounds, size in rows]
        return sorted(partitions, key=lambda partition: partition.start)

    def drop(self, partition: Partition, is_needed: Callable[[], bool]) -> bool:
        """Use DROP TABLE, which locks the parent. DETACH CONCURRENTLY would not lock the parent, but a killed
        process would leave the detached table behind, and no row of its time could be read or stored during
        the detachment.
        """
        return drop_with(f"DROP TABLE {partition.name}", [], partition, is_needed)

    def drop_rollups(self, start: datetime, end: datetime) -> None:
        """Keep the rollups: replacing a row takes no longer than inserting it."""

    def roll_up(self, dirty: Sequence[SeriesHours]) -> None:
        rollup_tables.roll_up(dirty, sparse=self.sparse)


def drop_with(
    statement: str,
    parameters: Sequence[str | datetime],
    partition: Partition,
    is_needed: Callable[[], bool],
) -> bool:
    """Drop *partition* by *statement* unless *is_needed* returns true; return whether it was dropped.

    *is_needed* is called while no other transaction can write to the partition.
    """
    with transaction_lock_timeout(RETRY_LOCK_TIMEOUT_MILLISECONDS), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {partition.name} IN SHARE MODE")
        if is_needed():
            return False
        cursor.execute(statement, parameters)
        return True


def _parse_bounds(text: str) -> tuple[datetime, datetime]:
    match = _BOUNDS.search(text)
    if match is None:
        raise ValueError(f"expected the bounds of a partition, got {text!r}")
    start, end = match.groups()
    return datetime.fromisoformat(start), datetime.fromisoformat(end)
