"""Measure the size and estimate the rows of a table on any engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection
from psycopg.rows import class_row

from monitor.core.db import binary
from monitor.core.db.timescale_extension import extension

# Rows are the planner's estimate: rows per page at the last ANALYZE, times today's pages. NULL where a table
# was never analysed or was empty then. The rows of a partitioned table are those of its partitions.
_PARTITIONS = """
SELECT oid::regclass::text AS name, pg_total_relation_size(oid) AS total_bytes,
    pg_relation_size(oid) AS heap_bytes,
    CASE
        WHEN relkind <> 'r' OR pg_relation_size(oid) = 0 THEN 0
        WHEN reltuples > 0 AND relpages > 0
            THEN reltuples / relpages * (pg_relation_size(oid) / current_setting('block_size')::int)
    END::bigint AS estimated_rows
FROM pg_class
WHERE oid = %(name)s::regclass
    OR oid IN (SELECT relid FROM pg_partition_tree(%(name)s::regclass) WHERE isleaf)
"""
_HYPERTABLE = """
SELECT format('%%I.%%I', materialization_hypertable_schema, materialization_hypertable_name)
FROM timescaledb_information.continuous_aggregates WHERE view_name = %(name)s
UNION SELECT hypertable_name FROM timescaledb_information.hypertables WHERE hypertable_name = %(name)s
"""
_HYPERTABLE_SIZE = "SELECT hypertable_size(%(name)s::regclass), approximate_row_count(%(name)s::regclass)"
_UNANALYSED_CHUNKS = """
SELECT pg_class.oid::regclass::text, pg_relation_size(pg_class.oid)
FROM show_chunks(%(name)s::regclass) AS chunk
    JOIN pg_class ON pg_class.oid = chunk
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN timescaledb_information.chunks ON chunk_schema = nspname AND chunk_name = relname
WHERE reltuples < 0 AND NOT is_compressed
"""
COUNTED_BYTES = 16 << 20  # the approximate size of the sample from which the rows of a table are estimated


@dataclass(frozen=True)
class TableSize:
    """The size of a table.

    Attributes:
        bytes: size with indexes and all partitions.
        rows: sum of ANALYZE's estimates per partition. If a partition was never analysed, its rows are
            counted or, if the partition is large, estimated from a sample.
    """

    bytes: int
    rows: int


class _PartitionSize(NamedTuple):
    name: str  # as PostgreSQL quotes it
    total_bytes: int
    heap_bytes: int
    estimated_rows: int | None


def table_size(table: str) -> TableSize:
    """Return the size of the table, hypertable or continuous aggregate *table*."""
    with connection.cursor() as cursor:
        if extension().installed:
            cursor.execute(_HYPERTABLE, {"name": table})
            if hypertable := cursor.fetchone():
                cursor.execute(_HYPERTABLE_SIZE, {"name": hypertable[0]})
                total_bytes, rows = cursor.fetchone()
                cursor.execute(_UNANALYSED_CHUNKS, {"name": hypertable[0]})
                return TableSize(total_bytes, rows + sum(_count_rows(*chunk) for chunk in cursor.fetchall()))
    return _partitioned_size(table)


def _partitioned_size(table: str) -> TableSize:
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(_PartitionSize)
        partitions: list[_PartitionSize] = cursor.execute(_PARTITIONS, {"name": table}).fetchall()
    rows = (
        _count_rows(each.name, each.heap_bytes) if each.estimated_rows is None else each.estimated_rows
        for each in partitions
    )
    return TableSize(sum(each.total_bytes for each in partitions), sum(rows))


def _count_rows(table: str, heap_bytes: int) -> int:
    """Count the rows of *table* (a name as PostgreSQL quotes it), or estimate them if the table is large."""
    share = min(1.0, COUNTED_BYTES / max(heap_bytes, 1))
    sample = f"TABLESAMPLE SYSTEM ({100 * share:.6f})" if share < 1 else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table} {sample}")  # noqa: S608 - the catalogue quotes it
        return int(cursor.fetchone()[0] / share)
