"""Keep planner statistics of partitioned tables: autovacuum analyses partitions, never their parent table.

Without statistics of the parent, PostgreSQL plans joins over many partitions as if they had hardly any rows.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from monitor.core.db import server_version

_OUTDATED = """
SELECT tables.relname FROM pg_class JOIN pg_stat_all_tables AS tables ON tables.relid = pg_class.oid
WHERE relkind = 'p' AND starts_with(tables.relname, 'monitor_') AND schemaname = current_schema()
    AND (last_analyze IS NULL OR last_analyze < %s)
ORDER BY tables.relname
"""
ANALYZE_ONLY_FROM = 180_000  # PostgreSQL 18: ANALYZE ONLY leaves the partitions to autovacuum


def outdated(before: datetime) -> list[str]:
    """Return the partitioned tables that have not been analysed since *before*."""
    with connection.cursor() as cursor:
        cursor.execute(_OUTDATED, [before])
        return [name for (name,) in cursor.fetchall()]


def analyse(table: str) -> None:
    """Update the planner's statistics of *table*; reads some pages of each partition."""
    only = "ONLY " if server_version.version() >= ANALYZE_ONLY_FROM else ""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {only}{connection.ops.quote_name(table)}")
