"""How much room tables take, on any engine."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from monitor.depot.extension import extension

_PARTITIONS = """
SELECT sum(pg_total_relation_size(oid))::bigint,
    sum(greatest(reltuples, 0)) FILTER (WHERE relkind = 'r')::bigint
FROM pg_class
WHERE oid = %(name)s::regclass
    OR oid IN (SELECT relid FROM pg_partition_tree(%(name)s::regclass) WHERE isleaf)
"""
_HYPERTABLE = """
SELECT format('%%I.%%I', materialization_hypertable_schema, materialization_hypertable_name)
FROM timescaledb_information.continuous_aggregates WHERE view_name = %(name)s
UNION SELECT hypertable_name FROM timescaledb_information.hypertables WHERE hypertable_name = %(name)s
"""
_CHUNKS = "SELECT hypertable_size(%(name)s::regclass), approximate_row_count(%(name)s::regclass)"


@dataclass(frozen=True)
class Space:
    """*bytes* with indexes and all parts. *rows* is what was last counted: 0 where nobody has (ANALYZE)."""

    bytes: int
    rows: int


def space(table: str) -> Space:
    """That of a table, or of what has its name on TimescaleDB."""
    with connection.cursor() as cursor:
        hypertable = None
        if extension().installed:
            cursor.execute(_HYPERTABLE, {"name": table})
            hypertable = cursor.fetchone()
        if hypertable is None:
            cursor.execute(_PARTITIONS, {"name": table})
        else:
            cursor.execute(_CHUNKS, {"name": hypertable[0]})
        return Space(*cursor.fetchone())
