"""Lock, reset and write the rows of states.

The state of a metric is a row of ``ForecastState``, the state of a series a row of ``SuccessState``. Several
rows are always locked in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from forecasting import state
from forecasting.base import OutdatedState
from monitor.analysis.forecasts.input_digest import NEVER_MATCHES
from monitor.analysis.forecasts.statements import execute, execute_each, fetch
from monitor.core.compression import unpack_state
from monitor.models import ForecastState, SuccessState
from monitor.models.forecast_state import LearnedState

Learned = TypeVar("Learned")

# FOR KEY SHARE: nothing that is being followed can be deleted at the same time.
_CREATE: Mapping[type[LearnedState], str] = {
    ForecastState: """
        INSERT INTO monitor_forecaststate (metric_id, is_behind, is_new, n, record_n, less, most)
        SELECT id, true, true, 0, 0, '{}', '{}' FROM monitor_metric
        WHERE id = ANY (%(keys)b::bigint[]) ORDER BY id FOR KEY SHARE ON CONFLICT DO NOTHING
    """,
    SuccessState: """
        INSERT INTO monitor_successstate (series_id, is_behind, n) SELECT id, true, 0 FROM monitor_series
        WHERE id = ANY (%(keys)b::bigint[]) ORDER BY id FOR KEY SHARE ON CONFLICT DO NOTHING
    """,
}
_LEARNED = ("state", "versions", "used_until", "used", "is_behind", "n")
_COLUMNS: Mapping[type[LearnedState], Sequence[str]] = {
    ForecastState: (*_LEARNED, "last_time", "last_value"),
    SuccessState: _LEARNED,
}
_LOCK = """
SELECT {key} AS key, {columns} FROM {table} WHERE {key} = ANY (%(keys)b::bigint[]) ORDER BY {key} FOR UPDATE
"""
_WRITE = "UPDATE {table} SET {columns} WHERE {key} = %(key)b"
_WAITED_FOR = "is_requested = is_requested AND %(is_behind)b"  # until everything is read
_AFTER_RESET = {"state": None, "versions": None, "used_until": None, "used": None, "is_behind": True}


@dataclass
class StateRow:
    """The learned part of a state; the fields are columns of ``LearnedState``.

    The state of a metric also has the newest used value, *last_value*, and its slot, *last_time*.
    """

    key: int
    state: bytes | None
    versions: bytes | None
    used_until: datetime | None
    used: bytes | None
    is_behind: bool
    n: int
    last_time: datetime | None = None
    last_value: float | None = None

    @property
    def is_reset(self) -> bool:
        return self.is_behind and self.used_until is None


def lock(states: type[LearnedState], keys: Collection[int]) -> dict[int, StateRow]:
    """Return the rows of *states* that exist among *keys*, by key, locked until the transaction ends."""
    statement = _format(_LOCK, states, ", ".join(_COLUMNS[states]))
    return {row.key: row for row in fetch(StateRow, statement, {"keys": list(keys)})}


def lock_or_create(states: type[LearnedState], keys: Collection[int]) -> dict[int, StateRow]:
    """Return the rows by key, locked; create missing rows for *keys* whose metric or series exists."""
    rows = lock(states, keys)
    if missing := [key for key in keys if key not in rows]:
        execute(_CREATE[states], {"keys": missing})
        rows = lock(states, keys)
    return rows


def load(kind: type[Learned], packed: bytes | memoryview) -> Learned:
    """Return the object of class *kind* that is *packed* in a state.

    Raises:
        forecasting.base.OutdatedState: another version of the methods made the state.
    """
    try:
        return state.load(kind, unpack_state(bytes(packed)))
    except ValueError as error:
        raise OutdatedState(str(error)) from error


def write(states: type[LearnedState], rows: Sequence[StateRow]) -> None:
    """Write the learned part of *rows*; ``StateUpdate.publish`` writes the answers."""
    if rows:
        columns = [f"{name} = %({name})b" for name in _COLUMNS[states]]
        if states is ForecastState:
            columns.append(_WAITED_FOR)
        execute_each(_format(_WRITE, states, ", ".join(columns)), map(vars, rows))


def reset(states: type[LearnedState], keys: Collection[int]) -> None:
    """Reset the states *keys*, which the caller has locked.

    All inputs are read again; the last answers stay until then.
    """
    newest = {"n": 0, "last_time": None, "last_value": None} if states is ForecastState else {}
    QuerySet(states).filter(pk__in=keys).update(**_AFTER_RESET, **newest)


@transaction.atomic
def reset_outdated(states: type[LearnedState], kind: type) -> int:
    """Reset the states from which ``load`` can no longer load a *kind*; return the number of reset states."""
    stored: QuerySet[LearnedState] = QuerySet(states).filter(versions__isnull=False).order_by("pk")
    versions = {bytes(row or b"") for row in stored.order_by().values_list("versions", flat=True).distinct()}
    outdated = [row for row in versions if not state.is_current(kind, row)]
    locked = stored.filter(versions__in=outdated).select_for_update()
    keys = list(locked.values_list("pk", flat=True)) if outdated else []
    reset(states, keys)
    return len(keys)


def give_up(states: type[LearnedState], key: int) -> None:
    """Stop updating the state *key* until its inputs change; the change then resets the state."""
    QuerySet(states).filter(pk=key).update(is_behind=False, used=NEVER_MATCHES)


def behind(states: type[LearnedState]) -> list[int]:
    """Return the key of one state with unread inputs, in a list; the list is empty if no state has any.

    Of several states, one that a client waits for is returned, then the state that has used the fewest
    values.
    """
    rows: QuerySet[LearnedState] = QuerySet(states).filter(is_behind=True)
    order = ["-is_requested", "n", "pk"] if states is ForecastState else ["n", "pk"]
    return list(rows.order_by(*order).values_list("pk", flat=True)[:1])


def _format(statement: str, states: type[LearnedState], columns: str) -> str:
    table = states._meta  # noqa: SLF001  # Django's public name of it
    return statement.format(table=table.db_table, key=table.pk.column, columns=columns)
