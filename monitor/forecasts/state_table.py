"""Rows of what forecasters know, one to a metric (``following``) or to a series (``succeeding``): how they
are kept, begun anew, and found behind. Whoever locks several does so in the order of their keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from forecasting import state
from monitor.db import binary

# Who follows something keeps it from being deleted for as long.
_FOLLOW = """
INSERT INTO {table} ({key}, is_behind, n {more}) SELECT id, true, 0 {first} FROM {owners} AS owner
WHERE id = ANY (%b::bigint[]) AND NOT EXISTS (SELECT FROM {table} AS had WHERE had.{key} = owner.id)
ORDER BY id FOR KEY SHARE ON CONFLICT DO NOTHING
"""
_LOCKED = "SELECT {columns} FROM {table} WHERE {key} = ANY (%b::bigint[]) ORDER BY {key} FOR UPDATE"
_BEGIN_ANEW = """
UPDATE {table} SET state = NULL, versions = NULL, used_until = NULL, used = NULL, is_behind = true {anew}
WHERE {key} = ANY (%b::bigint[])
"""
_KEPT_VERSIONS = "SELECT DISTINCT versions FROM {table} WHERE versions IS NOT NULL"
_OF_VERSIONS = "SELECT {key} FROM {table} WHERE versions = ANY (%b::bytea[]) ORDER BY {key} FOR UPDATE"
_BEHIND = "SELECT {key} FROM {table} WHERE is_behind ORDER BY n, {key} LIMIT %b"


class States:
    """The *table* of them, whose *key* is that of a row of *owners*. *locks* are the columns that ``locked``
    reads, *new* what else a new row has, and *anew* what else one that begins anew."""

    def __init__(
        self, table: str, key: str, owners: str, *, locks: str, new: Sequence[str] = ("", ""), anew: str = ""
    ) -> None:
        more, first = new
        self._said = {"table": table, "key": key, "owners": owners, "columns": locks}
        self._said |= {"more": more, "first": first, "anew": anew}

    def follow(self, keys: Collection[int]) -> None:
        """Let there be rows of those of *keys* that there are; part of the caller's transaction."""
        self._run(_FOLLOW, list(keys))

    def locked(self, keys: Collection[int]) -> list[Any]:
        """Their rows, ours until the end of the transaction."""
        return self._read(_LOCKED, list(keys))

    def begin_anew(self, keys: Collection[int]) -> None:
        """Forget what they have used; what was answered stays until there is a newer answer."""
        self._run(_BEGIN_ANEW, list(keys))

    def outdated(self, kind: type) -> list[int]:
        """Lock the rows whose states of *kind* cannot be loaded any more, and return their keys."""
        kept = [versions for (versions,) in self._read(_KEPT_VERSIONS)]
        others = [versions for versions in kept if not state.is_current(kind, versions)]
        return [key for (key,) in self._read(_OF_VERSIONS, others)] if others else []

    def behind(self, at_most: int) -> list[int]:
        """Those that have more to read, the ones first that have read the least."""
        return [key for (key,) in self._read(_BEHIND, at_most)]

    def keep(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write rows that have the same columns, each by its key."""
        if rows:
            table, key = self._said["table"], self._said["key"]
            columns = ", ".join(f"{name} = %({name})b" for name in rows[0] if name != key)
            with binary.cursor() as cursor:
                cursor.executemany(f"UPDATE {table} SET {columns} WHERE {key} = %({key})b", rows)  # noqa: S608

    def _run(self, statement: str, told: object) -> None:
        with binary.cursor() as cursor:
            cursor.execute(statement.format(**self._said).encode(), [told])

    def _read(self, statement: str, *parameters: object) -> list[Any]:
        with binary.cursor() as cursor:
            return cursor.execute(statement.format(**self._said).encode(), parameters, binary=True).fetchall()
