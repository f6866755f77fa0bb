"""A depot in use goes over to hypertables: nothing is lost, and nothing is out of reach at any moment.

What is to be copied is listed in a table of its own, part by part; from then on triggers add every day in
which anything changes. Each entry is copied, compared and struck off in one transaction that sees the depot
as it was at one instant, so that what changes meanwhile stays listed. When little is left the tables are
locked, the rest is done, and the new tables take the names of the old. What is killed is continued by the
next call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import OperationalError, connection, transaction

from monitor.db.advisory_locks import transaction_lock_timeout
from monitor.depot.engines.postgres import Plain

NEW, OLD = "_hyper", "_before"  # end the names of tables that are not, or no longer, in their place
Values = Sequence[str | datetime] | Mapping[str, datetime]
ROUNDS = 5  # of copying what changed meanwhile, before the rest is done under lock
LOCK_ATTEMPTS = 60
# Who wants to write waits that long behind us when somebody else keeps us waiting; and we give up before
# PostgreSQL looks for those who wait for each other, of whom it ends one.
LOCK_MILLISECONDS = 500


@dataclass(frozen=True)
class Table:
    """*time* is its column of time; rows are counted and compared by *group*."""

    name: str
    time: str
    group: str

    @property
    def new(self) -> str:
        return self.name + NEW


# In the order in which whoever stores a report writes them: in another, both would wait for each other.
TABLES = (
    Table("monitor_rawreport", "slot", "date_trunc('day', slot, 'UTC')"),
    Table("monitor_sample", "time", "metric_id"),
)


@dataclass(frozen=True)
class Stretch:
    """Some time of one table that is to be copied: *start* is in it, *end* is not."""

    table: str
    start: datetime
    end: datetime


class CopyDiffers(Exception):
    """What was copied is not what is there; the old tables are in their place, untouched."""


class TablesInUse(Exception):
    """Somebody keeps a table for long, again and again. Call again."""


_LIST = """
CREATE TABLE monitor_moving (name text NOT NULL, start timestamptz NOT NULL, "end" timestamptz NOT NULL)
"""
_LISTED = 'SELECT name, start, "end" FROM monitor_moving GROUP BY 1, 2, 3 ORDER BY 2, 1'
_ADD = "INSERT INTO monitor_moving VALUES (%s, %s, %s)"
_STRIKE = 'DELETE FROM monitor_moving WHERE name = %s AND start = %s AND "end" = %s'

_MAKE = """
CREATE TABLE {table.new} (LIKE {table.name} INCLUDING ALL);
SELECT create_hypertable(
    '{table.new}', by_range('{table.time}', interval '30 days'), create_default_indexes => false
)
"""
_WATCH = """
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
_REMOVE = """
DELETE FROM {table.new} AS new WHERE {within} AND NOT EXISTS (
    SELECT FROM {table.name} AS old
    WHERE {within_old} AND {same_key} AND ROW(old.*) IS NOT DISTINCT FROM ROW(new.*)
)
"""
_COPY = """
INSERT INTO {table.new} SELECT old.* FROM {table.name} AS old
WHERE {within_old} AND NOT EXISTS (SELECT FROM {table.new} AS new WHERE {within} AND {same_key})
"""
_COMPARE = """
WITH old AS ({summed_old}), new AS ({summed_new})
SELECT count(*) FROM old FULL JOIN new USING (of)
WHERE old.n IS DISTINCT FROM new.n OR old.hash IS DISTINCT FROM new.hash
"""
_SUMMED = """
SELECT {group} AS of, count(*) AS n, sum(hash_record_extended(rows, 0)) AS hash FROM {name} AS rows
WHERE {time} >= %(start)s AND {time} < %(end)s GROUP BY 1
"""
_FORGET = "DELETE FROM {table.new} WHERE {table.time} < %s"
_ALIKE = """
SELECT old.relname, new.relname FROM pg_index AS o JOIN pg_class AS old ON old.oid = o.indexrelid,
    pg_index AS n JOIN pg_class AS new ON new.oid = n.indexrelid
WHERE o.indrelid = %s::regclass AND n.indrelid = %s::regclass AND o.indisprimary = n.indisprimary
    AND substring(pg_get_indexdef(old.oid) FROM ' USING .*')
        = substring(pg_get_indexdef(new.oid) FROM ' USING .*')
"""
_THERE = "SELECT to_regclass(%s) IS NOT NULL"
_IS_PARTITIONED = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass"


def is_done() -> bool:
    """Whether the hypertables are in their place."""
    return not any(_ask(_IS_PARTITIONED, [table.name]) for table in TABLES)


def convert(tell: Callable[[str], None]) -> None:
    """Put hypertables in the place of native partitions. Not in a transaction, nor twice at once.

    Raises:
        CopyDiffers: a copy is not what was copied.
        TablesInUse: the tables could not be locked.
    """
    if not is_done():
        _prepare()
        for _ in range(ROUNDS):
            for stretch in _listed():
                tell(f"{stretch.table}: {stretch.start:%Y-%m-%d} to {stretch.end:%Y-%m-%d}")
                _move(stretch)
        tell("the last rows, and the tables' names")
        _swap_patiently()
    _drop_old()


def analyse() -> None:
    """Let the planner, and who asks for the number of rows, know what the new tables have."""
    for table in TABLES:
        _run(f"ANALYZE {table.name}")


def abandon() -> bool:
    """Take away what an unfinished call made; whether there was something."""
    with transaction.atomic():
        if not _ask(_THERE, ["monitor_moving"]):
            return False
        for table in TABLES:
            _run(f"DROP TABLE {table.new}")
            _run(f"DROP FUNCTION {table.name}_moves CASCADE")
        _run("DROP TABLE monitor_moving")
    return True


def _prepare() -> None:
    """Once: make the new tables, watch the old ones, and list all that they have."""
    with transaction.atomic():
        if _ask(_THERE, ["monitor_moving"]):
            return
        _run(_LIST)
        for table in TABLES:
            _run(_MAKE.format(table=table))
            _run(_WATCH.format(table=table))
            for part in Plain().parts(table.name):
                _run(_ADD, [table.name, part.start, part.end])


def _listed() -> list[Stretch]:
    with connection.cursor() as cursor:
        cursor.execute(_LISTED)
        return [Stretch(*row) for row in cursor.fetchall()]


def _move(stretch: Stretch) -> None:
    with transaction.atomic():
        _run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        _bring_over(stretch)


def _bring_over(stretch: Stretch) -> None:
    """Make the new table what the old one is, see that it is, and strike it off."""
    table = next(table for table in TABLES if table.name == stretch.table)
    words = _words(table)
    for statement in (_REMOVE, _COPY):
        _run(statement.format(table=table, **words), {"start": stretch.start, "end": stretch.end})
    _compare(table, stretch)
    _run(_STRIKE, [stretch.table, stretch.start, stretch.end])


def _words(table: Table) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(_KEYS, [table.name])
        keys = [name for (name,) in cursor.fetchall()]
    within = "{name}.{time} >= %(start)s AND {name}.{time} < %(end)s"
    return {
        "same_key": " AND ".join(f"old.{key} = new.{key}" for key in keys),
        "within": within.format(name="new", time=table.time),
        "within_old": within.format(name="old", time=table.time),
    }


def _compare(table: Table, stretch: Stretch) -> None:
    """Count the rows of every group, and add up their hashes."""
    old, new = (
        _SUMMED.format(group=table.group, name=name, time=table.time) for name in (table.name, table.new)
    )
    statement = _COMPARE.format(summed_old=old, summed_new=new)
    differing = _ask(statement, {"start": stretch.start, "end": stretch.end})
    if differing:
        raise CopyDiffers(
            f"{table.name} from {stretch.start:%Y-%m-%d} to {stretch.end:%Y-%m-%d}: the copy differs in "
            f"{differing} groups by {table.group}; the depot is as it was, begin anew or --abandon"
        )


def _swap_patiently() -> None:
    for _ in range(LOCK_ATTEMPTS):
        try:
            _swap()
        except OperationalError as error:
            in_use = error  # let those go on who queue behind us
        else:
            return
    raise TablesInUse(f"somebody kept the tables for himself, {LOCK_ATTEMPTS} times; call again: {in_use}")


def _swap() -> None:
    names = ", ".join(table.name for table in TABLES)
    with transaction_lock_timeout(LOCK_MILLISECONDS):
        _run(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
        for stretch in _listed():
            _bring_over(stretch)
        for table in TABLES:
            _forget_dropped(table)
            _rename(table)
        _run("DROP TABLE monitor_moving")


def _forget_dropped(table: Table) -> None:
    """No trigger says that a part of the old table was dropped, which are always the oldest."""
    parts = Plain().parts(table.name)
    if parts:
        _run(_FORGET.format(table=table), [parts[0].start])


def _rename(table: Table) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_ALIKE, [table.name, table.new])
        for old, new in cursor.fetchall():
            cursor.execute(f"ALTER INDEX {old} RENAME TO {old}{OLD}")
            cursor.execute(f"ALTER INDEX {new} RENAME TO {old}")
        cursor.execute(f"ALTER TABLE {table.name} RENAME TO {table.name}{OLD}")
        cursor.execute(f"ALTER TABLE {table.new} RENAME TO {table.name}")


def _drop_old() -> None:
    for table in TABLES:
        _run(f"DROP TABLE IF EXISTS {table.name}{OLD}")
        _run(f"DROP FUNCTION IF EXISTS {table.name}_moves")


def _run(statement: str, values: Values | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _ask(statement: str, values: Values) -> Any:
    """The first value of the answer."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]
