"""The two tables of states, one row per metric or per series: locked, reset, read and written alike.

Several rows are always locked in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from forecasting import state
from monitor.forecasts.input_digest import NEVER_MATCHES
from monitor.forecasts.statements import execute, execute_each, fetch

# FOR KEY SHARE: nothing that is being followed can be deleted at the same time.
_FOLLOW = """
INSERT INTO {table} ({key}, is_behind, n {columns}) SELECT id, true, 0 {values} FROM {owners} AS owner
WHERE id = ANY (%(keys)b::bigint[]) AND NOT EXISTS (SELECT FROM {table} AS had WHERE had.{key} = owner.id)
ORDER BY id FOR KEY SHARE ON CONFLICT DO NOTHING
"""
_LOCK = """
SELECT {key} AS key, used_until, used, is_behind FROM {table} WHERE {key} = ANY (%(keys)b::bigint[])
ORDER BY {key} FOR UPDATE
"""
_STATES = """
SELECT {key} AS key, state, {extra} FROM {table}
WHERE {key} = ANY (%(keys)b::bigint[]) AND state IS NOT NULL AND NOT (is_behind AND %(is_complete)b)
"""
_RESET = """
UPDATE {table} SET state = NULL, versions = NULL, used_until = NULL, used = NULL, is_behind = true {reset}
WHERE {key} = ANY (%(keys)b::bigint[])
"""
_GIVE_UP = "UPDATE {table} SET is_behind = false, used = %(used)b WHERE {key} = ANY (%(keys)b::bigint[])"
_VERSIONS = "SELECT DISTINCT versions FROM {table} WHERE versions IS NOT NULL"
_LOCK_OUTDATED = """
SELECT {key} AS key, used_until, used, is_behind FROM {table} WHERE versions = ANY (%(versions)b::bytea[])
ORDER BY {key} FOR UPDATE
"""
_BEHIND = """
SELECT {key} AS key, used_until, used, is_behind FROM {table} WHERE is_behind
ORDER BY n, {key} LIMIT %(at_most)b
"""


class StateRow(NamedTuple):
    """What a state has used. *is_behind*: there may be more in the depot, which is read part by part."""

    key: int
    used_until: datetime | None
    used: bytes | None
    is_behind: bool

    @property
    def is_reset(self) -> bool:
        return self.is_behind and self.used_until is None


class StoredState(NamedTuple):
    """A packed state; *last_time* and *last_value* are those of a metric."""

    key: int
    state: bytes
    last_time: datetime | None
    last_value: float | None


class StoredVersions(NamedTuple):
    """The versions of the methods that a state uses (``forecasting.state.versions``)."""

    versions: bytes


class StateTable:
    """A *table* whose *key* refers to a row of *owners*.

    *new_columns* and *new_values* are what else a new row needs, *reset* what else a reset changes, and
    *extra* the columns that ``stored`` reads beside the state.
    """

    def __init__(
        self,
        table: str,
        key: str,
        owners: str,
        *,
        new_columns: str = "",
        new_values: str = "",
        reset: str = "",
        extra: str,
    ) -> None:
        self._names = {"table": table, "key": key, "owners": owners, "reset": reset, "extra": extra}
        self._names |= {"columns": new_columns, "values": new_values}

    def follow(self, keys: Collection[int]) -> None:
        """Create missing rows of those of *keys* that exist; part of the caller's transaction."""
        self._execute(_FOLLOW, keys)

    def lock(self, keys: Collection[int]) -> dict[int, StateRow]:
        """Return the existing rows by key, locked until the end of the transaction."""
        return {row.key: row for row in self._rows(_LOCK, {"keys": list(keys)})}

    def follow_and_lock(self, keys: Collection[int]) -> dict[int, StateRow]:
        """Return the rows by key, locked; missing ones are created."""
        rows = self.lock(keys)
        missing = [key for key in keys if key not in rows]
        if missing:
            self.follow(missing)
            rows = self.lock(keys)
        return rows

    def stored(self, keys: Collection[int], *, is_complete: bool = False) -> dict[int, StoredState]:
        """Return the states of those of *keys* that have one; with *is_complete* only those not behind."""
        parameters = {"keys": list(keys), "is_complete": is_complete}
        return {row.key: row for row in fetch(StoredState, _STATES.format(**self._names), parameters)}

    def reset(self, keys: Collection[int]) -> None:
        """Make these states be computed from scratch; the last answers stay until then."""
        if keys:
            self._execute(_RESET, keys)

    @transaction.atomic
    def reset_outdated(self, state_class: type) -> int:
        """Reset the states that ``forecasting.state`` cannot load any more; return how many."""
        stored = fetch(StoredVersions, _VERSIONS.format(**self._names), {})
        outdated = [row.versions for row in stored if not state.is_current(state_class, row.versions)]
        rows = self._rows(_LOCK_OUTDATED, {"versions": outdated}) if outdated else []
        self.reset([row.key for row in rows])
        return len(rows)

    def give_up(self, keys: Collection[int]) -> None:
        """Leave these states as they are until the next change, which then resets them."""
        execute(_GIVE_UP.format(**self._names), {"keys": list(keys), "used": NEVER_MATCHES})

    def behind(self, at_most: int) -> list[int]:
        """Return keys of states that have more to read, those first that have read least."""
        return [row.key for row in self._rows(_BEHIND, {"at_most": at_most})]

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Update rows; each has the same columns, and its key."""
        if rows:
            key = self._names["key"]
            columns = ", ".join(f"{name} = %({name})b" for name in rows[0] if name != key)
            execute_each(f"UPDATE {self._names['table']} SET {columns} WHERE {key} = %({key})b", rows)  # noqa: S608

    def _execute(self, statement: str, keys: Collection[int]) -> None:
        execute(statement.format(**self._names), {"keys": list(keys)})

    def _rows(self, statement: str, parameters: dict[str, Any]) -> list[StateRow]:
        return fetch(StateRow, statement.format(**self._names), parameters)


METRIC_STATES = StateTable(
    "monitor_forecaststate",
    "metric_id",
    "monitor_metric",
    new_columns=", is_new, method, predictor, record_n, less, most",
    new_values=", true, '', '', 0, '{}', '{}'",
    reset=", n = 0, last_time = NULL, last_value = NULL",
    extra="last_time, last_value",
)
SUCCESS_STATES = StateTable(
    "monitor_successstate",
    "series_id",
    "monitor_series",
    extra="NULL::timestamptz AS last_time, NULL::float8 AS last_value",
)
