"""How much room tables take, on any engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection

from monitor.db.timescale_extension import extension

# Rows as the planner estimates them: so many a page as when it was analysed. NULL where it never was, or was
# empty then. Of a table that has parts, its parts say it.
_PARTITIONS = """
SELECT oid::regclass::text, pg_total_relation_size(oid), pg_relation_size(oid),
    CASE
        WHEN relkind <> 'r' OR pg_relation_size(oid) = 0 THEN 0
        WHEN reltuples > 0 AND relpages > 0
            THEN reltuples / relpages * (pg_relation_size(oid) / current_setting('block_size')::int)
    END::bigint
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
_UNCOUNTED = """
SELECT pg_class.oid::regclass::text, pg_relation_size(pg_class.oid)
FROM show_chunks(%(name)s::regclass) AS chunk
    JOIN pg_class ON pg_class.oid = chunk
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    JOIN timescaledb_information.chunks ON chunk_schema = nspname AND chunk_name = relname
WHERE reltuples < 0 AND NOT is_compressed
"""
COUNTED_BYTES = 16 << 20  # of what is larger, about so much is read, and the rest taken to be like it


@dataclass(frozen=True)
class TableSize:
    """*bytes* with indexes and all parts. *rows* is what ANALYZE says of each part; what nobody has analysed
    yet is counted, or estimated where it is large."""

    bytes: int
    rows: int


def table_size(table: str) -> TableSize:
    """That of a table, or of what has its name on TimescaleDB."""
    hypertable = None
    if extension().installed:
        hypertable = next((name for (name,) in _rows(_HYPERTABLE, table)), None)
    return _partitions(table) if hypertable is None else _chunks(hypertable)


def _partitions(table: str) -> TableSize:
    parts = _rows(_PARTITIONS, table)
    rows = sum(_counted(name, size) if counted is None else counted for name, _, size, counted in parts)
    return TableSize(sum(total for _, total, _, _ in parts), rows)


def _chunks(hypertable: str) -> TableSize:
    ((total, counted),) = _rows(_CHUNKS, hypertable)
    return TableSize(total, counted + sum(_counted(*chunk) for chunk in _rows(_UNCOUNTED, hypertable)))


def _counted(part: str, size: int) -> int:
    """Rows of *part*, as PostgreSQL quotes it, which has *size* bytes."""
    share = min(1.0, COUNTED_BYTES / max(size, 1))
    sample = f"TABLESAMPLE SYSTEM ({100 * share:.6f})" if share < 1 else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {part} {sample}")  # noqa: S608 - as the catalogue quotes it
        return int(cursor.fetchone()[0] / share)


def _rows(statement: str, table: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"name": table})
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found
