"""Plain PostgreSQL: native partitions by time."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

from django.db import connection, transaction

from monitor.db.advisory_locks import YIELDING_MILLISECONDS, alone, impatiently
from monitor.db.partition_ranges import Span, span_of, spans_ahead
from monitor.depot.engines import rollup_tables
from monitor.depot.engines.engine import BY_TIME, Hours, Part

LOCK = 0x70617274  # "part": one makes partitions at a time
MONTHS_AHEAD = 2
# Rows are added, hardly ever changed: without this a part is vacuumed when a fifth of it is new, and until
# then reading it by the index alone looks at the rows as well. Partitions do not inherit it.
STORAGE = "autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05"

_LISTED = """
SELECT child.relname, pg_get_expr(child.relpartbound, child.oid), pg_total_relation_size(child.oid)
FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = %s::regclass
"""
_THERE = "SELECT relname FROM pg_class WHERE relname = ANY (%s) AND relispartition"
_BOUNDS = re.compile(r"FROM \('([^']+)'\) TO \('([^']+)'\)")


class Plain:
    name = "PostgreSQL"
    sparse = rollup_tables.SPARSE  # samples of a day, up to which no hours are kept of it

    def make_room(self, times: Collection[datetime]) -> None:
        _make({span_of(time) for time in times})

    def prepare_ahead(self, now: datetime) -> None:
        with transaction.atomic():
            _make(spans_ahead(now, MONTHS_AHEAD))

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
    with impatiently(YIELDING_MILLISECONDS), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {part.name} IN SHARE MODE")
        if is_needed():
            return False
        cursor.execute(statement, told)
        return True


def _make(spans: Iterable[Span]) -> None:
    """Make the partitions of *spans* that are not there."""
    wanted = {f"{table}_{span.label}": (table, span) for span in sorted(spans) for table in _parted()}
    if not _missing(wanted):
        return
    alone(LOCK, wait=True)
    for name in _missing(wanted):
        _attach(*wanted[name], name)


def _parted() -> list[str]:
    """Those of ``BY_TIME`` that have partitions: on its way here a depot gets them one after the other."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relname = ANY (%s) AND relkind = 'p'", [list(BY_TIME)]
        )
        return [name for (name,) in cursor.fetchall()]


def _missing(names: Iterable[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_THERE, [list(names)])
        there = {name for (name,) in cursor.fetchall()}
    return [name for name in names if name not in there]


def _attach(table: str, span: Span, name: str) -> None:
    """A table of its own first: attaching one locks out nobody who reads or writes, making it in place
    would."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL) WITH ({STORAGE})")
        cursor.execute(
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM (%s) TO (%s)",
            [span.start, span.end],
        )


def _bounds(text: str) -> tuple[datetime, datetime]:
    found = _BOUNDS.search(text)
    if found is None:
        raise ValueError(f"expected the bounds of a partition, got {text!r}")
    start, end = found.groups()
    return datetime.fromisoformat(start), datetime.fromisoformat(end)
