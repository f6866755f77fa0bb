"""Replace native partitions by hypertables in a depot in use: no row is lost or unreachable at any moment.

The table ``monitor_moving`` lists the ranges still to be copied, at first one per partition. Triggers add
every day in which rows change. Each range is copied, compared and deleted from the list in one transaction
with one snapshot, so a range that changes meanwhile stays listed. At the end the tables are locked, the last
ranges are copied, and the new tables take the old names. After a kill the next call continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction

from monitor.core.db.advisory_locks import transaction_lock_timeout
from monitor.depot.engines.postgres import PostgresEngine

NEW, OLD = "_hyper", "_before"  # suffixes of the new tables before the swap, and of the old ones after it
Parameters = Sequence[str | datetime] | Mapping[str, datetime]
ROUNDS = 5  # rounds of copying changed ranges, before the last ranges are copied under lock
LOCK_ATTEMPTS = 60
# Writers queue behind our lock request while another transaction delays it. Half a second is also less than
# deadlock_timeout, after which PostgreSQL would cancel one of two transactions that wait for each other.
LOCK_MILLISECONDS = 500


@dataclass(frozen=True)
class MovedTable:
    """A table to be moved.

    Attributes:
        time: name of the time column.
        group: SQL expression by which rows are grouped: table and copy are compared group by group.
    """

    name: str
    time: str
    group: str

    @property
    def new(self) -> str:
        return self.name + NEW


# In the order in which ingest writes them: locking them in another order would deadlock.
TABLES = (
    MovedTable("monitor_rawreport", "slot", "date_trunc('day', slot, 'UTC')"),
    MovedTable("monitor_sample", "time", "metric_id"),
)


@dataclass(frozen=True)
class CopyRange:
    """A time range of one table to be copied: *start* is included, *end* is not."""

    table: str
    start: datetime
    end: datetime


class CopyDiffers(Exception):
    """A copy differs from its original; the old tables are unchanged and in use."""


class TablesInUse(Exception):
    """Other transactions kept the tables locked at every attempt. Try again."""


_CREATE_PENDING = """
CREATE TABLE monitor_moving (name text NOT NULL, start timestamptz NOT NULL, "end" timestamptz NOT NULL)
"""
_PENDING = 'SELECT name, start, "end" FROM monitor_moving GROUP BY 1, 2, 3 ORDER BY 2, 1'
_ADD_PENDING = "INSERT INTO monitor_moving VALUES (%s, %s, %s)"
_DELETE_PENDING = 'DELETE FROM monitor_moving WHERE name = %s AND start = %s AND "end" = %s'

_CREATE_HYPERTABLE = """
CREATE TABLE {table.new} (LIKE {table.name} INCLUDING ALL);
SELECT create_hypertable(
    '{table.new}', by_range('{table.time}', interval '30 days'), create_default_indexes => false
)
"""
_CREATE_TRIGGERS = """
CREATE FUNCTION {table.name}_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO monitor_moving SELECT '{table.name}', day, day + interval '24 hours'
        FROM (SELECT DISTINCT date_trunc('day', {table.time}, 'UTC') AS day FROM changed) AS days;
    RETURN NULL;
END $$;
CREATE TRIGGER moves_in AFTER INSERT ON {table.name} REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {table.name}_moves();
CREATE TRIGGER moves_out AFTER DELETE ON {table.name} REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {table.name}_moves();
CREATE TRIGGER moves_within AFTER UPDATE ON {table.name} REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {table.name}_moves();
"""
_KEYS = """
SELECT attname
FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey[:indnkeyatts - 1])
WHERE indrelid = %s::regclass AND indisprimary
"""
_DELETE_CHANGED = """
DELETE FROM {table.new} AS new WHERE {within} AND NOT EXISTS (
    SELECT FROM {table.name} AS old
    WHERE {within_old} AND {same_key} AND ROW(old.*) IS NOT DISTINCT FROM ROW(new.*)
)
"""
_COPY_MISSING = """
INSERT INTO {table.new} SELECT old.* FROM {table.name} AS old
WHERE {within_old} AND NOT EXISTS (SELECT FROM {table.new} AS new WHERE {within} AND {same_key})
"""
_COUNT_DIFFERENCES = """
WITH old AS ({checksums_old}), new AS ({checksums_new})
SELECT count(*) FROM old FULL JOIN new USING (key)
WHERE old.n IS DISTINCT FROM new.n OR old.hash IS DISTINCT FROM new.hash
"""
_CHECKSUMS = """
SELECT {group} AS key, count(*) AS n, sum(hash_record_extended(rows, 0)) AS hash FROM {name} AS rows
WHERE {time} >= %(start)s AND {time} < %(end)s GROUP BY 1
"""
_DELETE_DROPPED = "DELETE FROM {table.new} WHERE {table.time} < %s"
_MATCHING_INDEXES = """
SELECT old.relname, new.relname FROM pg_index AS o JOIN pg_class AS old ON old.oid = o.indexrelid,
    pg_index AS n JOIN pg_class AS new ON new.oid = n.indexrelid
WHERE o.indrelid = %s::regclass AND n.indrelid = %s::regclass AND o.indisprimary = n.indisprimary
    AND substring(pg_get_indexdef(old.oid) FROM ' USING .*')
        = substring(pg_get_indexdef(new.oid) FROM ' USING .*')
"""
_EXISTS = "SELECT to_regclass(%s) IS NOT NULL"
_IS_PARTITIONED = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass"


def is_done() -> bool:
    """Return whether the hypertables have replaced the partitioned tables."""
    return not any(_fetch_value(_IS_PARTITIONED, [table.name]) for table in TABLES)


def move(report: Callable[[str], None]) -> None:
    """Replace native partitions by hypertables. Must not run in a transaction; calls must not overlap.

    Raises:
        CopyDiffers: a copy differs from its original.
        TablesInUse: the tables could not be locked.
    """
    if not is_done():
        _prepare()
        for _ in range(ROUNDS):
            for pending in _pending():
                report(f"{pending.table}: {pending.start:%Y-%m-%d} to {pending.end:%Y-%m-%d}")
                with transaction.atomic():
                    _execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    _copy(pending)
        report("the last rows, and the names of the tables")
        _swap_with_retries()
    for table in TABLES:
        _execute(f"DROP TABLE IF EXISTS {table.name}{OLD}")
        _execute(f"DROP FUNCTION IF EXISTS {table.name}_moves")


def analyse() -> None:
    """Update the planner's statistics and row estimates of the new tables."""
    for table in TABLES:
        _execute(f"ANALYZE {table.name}")


def abandon() -> bool:
    """Remove the tables and triggers of an unfinished ``move``; return whether such tables existed."""
    with transaction.atomic():
        if not _fetch_value(_EXISTS, ["monitor_moving"]):
            return False
        for table in TABLES:
            _execute(f"DROP TABLE {table.new}")
            _execute(f"DROP FUNCTION {table.name}_moves CASCADE")
        _execute("DROP TABLE monitor_moving")
    return True


def _prepare() -> None:
    """Create the new tables and the triggers, and list all partitions as pending, unless this is done."""
    with transaction.atomic():
        if _fetch_value(_EXISTS, ["monitor_moving"]):
            return
        _execute(_CREATE_PENDING)
        for table in TABLES:
            _execute(_CREATE_HYPERTABLE.format(table=table))
            _execute(_CREATE_TRIGGERS.format(table=table))
            for partition in PostgresEngine().partitions(table.name):
                _execute(_ADD_PENDING, [table.name, partition.start, partition.end])


def _pending() -> list[CopyRange]:
    with connection.cursor() as cursor:
        cursor.execute(_PENDING)
        return [CopyRange(table, start, end) for table, start, end in cursor.fetchall()]


def _copy(pending: CopyRange) -> None:
    """Make the range equal in both tables, verify that both are equal, and delete the range from the list."""
    table = next(table for table in TABLES if table.name == pending.table)
    with connection.cursor() as cursor:
        cursor.execute(_KEYS, [table.name])
        keys = [name for (name,) in cursor.fetchall()]
    within = "{name}.{time} >= %(start)s AND {name}.{time} < %(end)s"
    conditions = {
        "same_key": " AND ".join(f"old.{key} = new.{key}" for key in keys),
        "within": within.format(name="new", time=table.time),
        "within_old": within.format(name="old", time=table.time),
    }
    for statement in (_DELETE_CHANGED, _COPY_MISSING):
        _execute(statement.format(table=table, **conditions), {"start": pending.start, "end": pending.end})
    _compare(table, pending)
    _execute(_DELETE_PENDING, [pending.table, pending.start, pending.end])


def _compare(table: MovedTable, pending: CopyRange) -> None:
    """Compare row counts and sums of row hashes, group by group. Raises CopyDiffers if a group differs."""
    old, new = (
        _CHECKSUMS.format(group=table.group, name=name, time=table.time) for name in (table.name, table.new)
    )
    statement = _COUNT_DIFFERENCES.format(checksums_old=old, checksums_new=new)
    differing = _fetch_value(statement, {"start": pending.start, "end": pending.end})
    if differing:
        raise CopyDiffers(
            f"{table.name} from {pending.start:%Y-%m-%d} to {pending.end:%Y-%m-%d}: the copy differs in "
            f"{differing} groups by {table.group}; the depot is unchanged, start again or --abandon"
        )


def _swap_with_retries() -> None:
    for _ in range(LOCK_ATTEMPTS):
        try:
            _swap()
        except OperationalError as error:
            lock_error = error  # the transactions that queue behind our request proceed now
        else:
            return
    raise TablesInUse(
        f"other transactions kept the tables locked, {LOCK_ATTEMPTS} times; call again: {lock_error}"
    )


def _swap() -> None:
    names = ", ".join(table.name for table in TABLES)
    with transaction_lock_timeout(LOCK_MILLISECONDS):
        _execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
        for pending in _pending():
            _copy(pending)
        for table in TABLES:
            # No trigger fires when retention drops a partition of the old table, always the oldest.
            if partitions := PostgresEngine().partitions(table.name):
                _execute(_DELETE_DROPPED.format(table=table), [partitions[0].start])
            _rename(table)
        _execute("DROP TABLE monitor_moving")


def _rename(table: MovedTable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_MATCHING_INDEXES, [table.name, table.new])
        for old, new in cursor.fetchall():
            cursor.execute(f"ALTER INDEX {old} RENAME TO {old}{OLD}")
            cursor.execute(f"ALTER INDEX {new} RENAME TO {old}")
        cursor.execute(f"ALTER TABLE {table.name} RENAME TO {table.name}{OLD}")
        cursor.execute(f"ALTER TABLE {table.new} RENAME TO {table.name}")


def _execute(statement: str, parameters: Parameters | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def _fetch_value(statement: str, parameters: Parameters) -> Any:
    """Return the first column of the first row."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()[0]
