"""What the planner knows of tables in parts: nobody tells it by itself.

Autovacuum looks at the parts, never at the table that they are parts of; without statistics of that, joins
over many parts are planned as if there were next to nothing in them.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from monitor.db import server_version

# A table that was never analysed, or not since *before*.
_OUTDATED = """
SELECT seen.relname FROM pg_class JOIN pg_stat_all_tables AS seen ON seen.relid = pg_class.oid
WHERE relkind = 'p' AND starts_with(seen.relname, 'monitor_') AND schemaname = current_schema()
    AND (last_analyze IS NULL OR last_analyze < %s)
ORDER BY seen.relname
"""
ONLY_FROM = 180_000  # the version from which on the parts can be left out: they are autovacuum's


def outdated(before: datetime) -> list[str]:
    """The tables in parts that have not been analysed since *before*."""
    with connection.cursor() as cursor:
        cursor.execute(_OUTDATED, [before])
        return [name for (name,) in cursor.fetchall()]


def analyse(table: str) -> None:
    """Tell the planner what is in *table*: it reads some pages of each part."""
    only = "ONLY " if server_version.version() >= ONLY_FROM else ""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {only}{connection.ops.quote_name(table)}")
