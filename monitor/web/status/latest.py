"""Read the latest state of many series: state, age, newest outcomes, hourly totals of the last day.

The number of queries does not depend on the number of series, and no history is read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from django.core.exceptions import EmptyResultSet
from numpy.typing import NDArray
from psycopg.rows import class_row

from monitor.core.db import binary
from monitor.core.db.timestamps import micros
from monitor.models import Run, Series
from monitor.models.latest_run import HOURS
from monitor.models.run import State
from monitor.web.status import column_arrays, latest_sql
from monitor.web.status.column_arrays import NEVER

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet

Rows = TypeVar("Rows")
Columns = Mapping[
    str, tuple[str, str]
]  # by name: kind and SQL, see ``monitor.web.status.column_arrays.read``
HOUR = timedelta(hours=1)
LETTERS = latest_sql.LETTERS  # the state of each letter
UNKNOWN = NEVER  # the value of a missing time
MOST_LISTED = 2_000  # series that a statement names by their keys; more are selected again
MOST_GAPS = 32  # numbers per key: primary keys leave gaps where rows were deleted
_NOTHING = "false"  # the condition of no series
_SKIPPED = State.SKIPPED[0]
# The state of the newest run that was not skipped; skipped, if there is none and the newest slot was skipped.
STATE_OR_SKIPPED = f"CASE WHEN state = '' AND right(outcomes, 1) = '{_SKIPPED}' THEN 'skipped' ELSE state END"
_DEFAULTS = {  # the values of a series without an ended run
    "state": b" ",
    "slot": NEVER,
    "ended_at": NEVER,
    "stage": "",
    "failed_resource": "",
    "outcomes": b" ",
    "hours_end": NEVER,
    "means": np.nan,
}
_COLUMNS = {
    "state": ("letter", "state"),
    "run": ("run", f"coalesce(run, '{uuid.UUID(int=0)}')"),
    "slot": ("time", "coalesce(slot, '-infinity')"),
    "ended_at": ("time", "coalesce(ended_at, '-infinity')"),
    "stage": ("text", "stage"),
    "failed_resource": ("text", "failed_resource"),
    "outcomes": ("outcomes", "outcomes"),
    "hours_end": ("time", "coalesce(hours_end, '-infinity')"),
    "means": ("means", f"coalesce(means, {latest_sql.NO_MEANS})"),
}


@dataclass(frozen=True)
class Latest:
    """The latest states of series as arrays of the same length: one row per series, in no order.

    Times are microseconds since 1970, UTC; a time that does not exist is ``UNKNOWN``.

    Attributes:
        state: the state of the newest run that was not skipped, as a letter of ``LETTERS``; a space if there
            is no such run.
        age: the number of seconds since this run ended; NaN if there is no such run.
        means: 24 numbers per row, oldest first: the mean total, in seconds, of the passed runs in each of the
            24 hours before *hours_end*; NaN for an hour without a passed run.
        hours_end: the end of the current hour, or of a later hour if a value is from the future.
    """

    series: NDArray[np.int64]
    name: NDArray[np.object_]
    state: NDArray[np.bytes_]
    run: NDArray[np.void]
    slot: NDArray[np.int64]
    ended_at: NDArray[np.int64]
    stage: NDArray[np.object_]
    failed_resource: NDArray[np.object_]
    outcomes: NDArray[np.bytes_]
    hours_end: NDArray[np.int64]
    means: NDArray[np.float32]
    age: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.series)


def latest(series: SeriesQuerySet, now: datetime) -> Latest:
    """Return the latest state of each of *series* at *now*."""
    named = series_columns(series, {"name": ("name", "name")})
    columns = latest_columns(series, named["series"], _COLUMNS)
    end = _end_of_hour(now)
    columns["means"] = _shifted_to(end, columns["hours_end"], columns["means"])
    columns["hours_end"] = np.maximum(columns["hours_end"], end)
    ended_at = np.where(columns["ended_at"] == NEVER, columns["slot"], columns["ended_at"])
    # A reporter's clock may be ahead of ours: no negative ages.
    age = np.where(ended_at == NEVER, np.nan, np.maximum(micros(now) - ended_at, 0) / 1e6)
    return Latest(**named, **columns, age=age)


def hourly_means(keys: Collection[int], now: datetime) -> dict[int, tuple[float, ...]]:
    """Return ``Latest.means`` of each of the series *keys*."""
    order = np.array(list(keys), dtype=np.int64)
    names = ("hours_end", "means")
    columns = latest_columns(
        Series.objects.filter(pk__in=keys), order, {each: _COLUMNS[each] for each in names}
    )
    means = _shifted_to(_end_of_hour(now), columns["hours_end"], columns["means"])
    return dict(zip(order.tolist(), map(tuple, means.tolist()), strict=True))


def _end_of_hour(now: datetime) -> int:
    return micros(now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + HOUR)


@dataclass(frozen=True)
class NewestRuns:
    """The newest runs of the series *name*.

    Attributes:
        run: the newest run that was not skipped; None if there is no such run.
        slot: the slot of this run.
        skipped_slot: the newest slot, if it was skipped; None if a run took place in it.
        trend: a pair (state, failed resource) for each of the newest ended runs, oldest first.
    """

    name: str
    run: uuid.UUID | None
    slot: datetime | None
    skipped_slot: datetime | None
    trend: tuple[tuple[State, str], ...]


@dataclass(frozen=True)
class _RecentRow:
    id: int
    name: str
    run: uuid.UUID | None
    slot: datetime | None
    newest_slot: datetime | None
    outcomes: str
    failed_resources: list[str]


def recent_runs(keys: Collection[int]) -> dict[int, NewestRuns]:
    """Return the recent runs of each of the series *keys*; series without an ended run are absent.

    Call it for one page of series: reading row by row is slower than reading arrays of many series.
    """
    if not keys:
        return {}
    listed = "{} = ANY (%b::bigint[])", [list(keys)]
    rows = _current(listed, _recent_rows, lambda rows: [row.id for row in rows], with_hours=False)
    return {
        row.id: NewestRuns(
            row.name,
            row.run,
            row.slot,
            row.newest_slot if row.outcomes.endswith(_SKIPPED) else None,
            _trend(row.outcomes, row.failed_resources),
        )
        for row in rows
    }


def _recent_rows(relation: str, parameters: Sequence[object]) -> list[_RecentRow]:
    query = (
        "SELECT series.id, series.name, run, slot, slots[cardinality(slots)] AS newest_slot,"  # noqa: S608
        " outcomes, failed_resources"
        f" FROM monitor_series AS series JOIN {relation} AS latest ON latest.series_id = series.id"
    )
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(_RecentRow)
        return cursor.execute(query.encode(), parameters, prepare=False).fetchall()


def newest_runs(recent: Mapping[int, NewestRuns]) -> dict[int, Run]:
    """Return, by primary key of the series, the newest run among *recent* that was not skipped."""
    slots = {each.run: each.slot for each in recent.values() if each.run and each.slot}
    runs = Run.objects.filter(pk__in=list(slots), slot__in=set(slots.values()))
    return {run.series_id: run for run in runs}


def skipped_runs(recent: Mapping[int, NewestRuns]) -> dict[int, Run]:
    """Return, by primary key of the series, the newest slot of each series whose newest slot was skipped."""
    slots = {key: each.skipped_slot for key, each in recent.items() if each.skipped_slot}
    runs = Run.objects.filter(series__in=list(slots), slot__in=set(slots.values()), state=State.SKIPPED)
    return {run.series_id: run for run in runs if run.slot == slots[run.series_id]}


def _trend(outcomes: str, failed_resources: Sequence[str]) -> tuple[tuple[State, str], ...]:
    states = [LETTERS[letter] for letter in outcomes]
    return tuple(zip(states, failed_resources or [""] * len(states), strict=True))


def series_columns(series: SeriesQuerySet, columns: Columns) -> dict[str, NDArray[Any]]:
    """Return the primary keys of *series* as ``series``, and *columns* of the table of series."""
    return _read({"series": ("integer", "id"), **columns}, "monitor_series", "id", series)


def binding_columns(series: SeriesQuerySet) -> dict[str, NDArray[Any]]:
    """Return the columns ``series`` and ``resource`` (primary keys) of the bindings of *series*."""
    columns = {"series": ("integer", "series_id"), "resource": ("integer", "resource_id")}
    return _read(columns, "monitor_binding", "series_id", series)


def _read(columns: Columns, table: str, key: str, series: SeriesQuerySet) -> dict[str, NDArray[Any]]:
    """Return *columns* of the rows of *table* whose *key* is that of one of *series*."""
    condition, parameters = _condition(series)
    if condition == _NOTHING:
        return column_arrays.empty(columns)
    return column_arrays.read(columns, f"FROM {table} WHERE {condition.format(key)}", parameters)


def latest_columns(
    series: SeriesQuerySet, order: NDArray[np.int64], columns: Columns, joined: str = ""
) -> dict[str, NDArray[Any]]:
    """Return *columns* of the latest states of series, in the order of the primary keys *order*.

    *series* contains all series in *order*. *joined* is an SQL join to the relation ``latest``. The call is
    faster without the column ``means``. The tables of series and of latest states are read separately and
    joined here, in half the time of a join in the database.
    """
    if not len(order):
        return column_arrays.empty(columns)
    keyed = {"series_id": ("integer", "series_id"), **columns}
    listed = "{} = ANY (%b::bigint[])", [order]
    rows = _current(
        listed if len(order) <= MOST_LISTED else _condition(series),
        lambda relation, parameters: column_arrays.read(
            keyed, f"FROM {relation} AS latest {joined}", parameters
        ),
        lambda rows: rows["series_id"].tolist(),
        with_hours="means" in columns,
    )
    positions = positions_of(order, rows.pop("series_id"))
    return {name: take(column, positions, _DEFAULTS.get(name, 0)) for name, column in rows.items()}


def _current(
    condition: tuple[str, list[Any]],
    read: Callable[[str, Sequence[object]], Rows],
    keys_of: Callable[[Rows], Iterable[int]],
    *,
    with_hours: bool,
) -> Rows:
    """Return what *read* returns of a relation of latest states, with its parameters.

    *condition*, with parameters, is one of ``_condition``. The states are those of the beginning of the call
    or later ones. *keys_of* returns the keys of the series in the result.
    """
    column, parameters = condition[0].format("series_id"), condition[1]
    behind = latest_sql.behind(column, parameters)
    since = latest_sql.bound_of(behind)
    rows = read(*latest_sql.rows_with(column, parameters, behind, with_hours=with_hours, since=since))
    if since is None or {each.id for each in behind} <= set(keys_of(rows)):
        return rows
    return read(*latest_sql.rows_with(column, parameters, behind, with_hours=with_hours, since=None))


def positions_of(keys: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each of *keys* in *column*; -1 for a missing key."""
    if not len(column):
        return np.full(len(keys), -1)
    first, last = int(column.min()), int(column.max())
    if last - first < MOST_GAPS * len(column):  # a table by key takes a tenth of the time of a search
        table = np.full(last - first + 2, -1)
        table[column - first] = np.arange(len(column))
        is_between = (keys >= first) & (keys <= last)
        return table[np.where(is_between, keys - first, last - first + 1)]
    sorting = np.argsort(column)
    positions = sorting[np.searchsorted(column, keys, sorter=sorting).clip(max=len(column) - 1)]
    return np.where(column[positions] == keys, positions, -1)


def take(column: NDArray[Any], positions: NDArray[np.int64], default: object) -> NDArray[Any]:
    """Return the values of *column* at *positions*; *default* where a position is -1."""
    if not len(column):
        return np.full((len(positions), *column.shape[1:]), default, column.dtype)
    values = column[positions]
    is_missing = positions < 0
    if is_missing.any():
        values[is_missing] = np.array(default, column.dtype) if column.dtype.kind != "V" else b""
    return values


def _condition(series: SeriesQuerySet) -> tuple[str, list[Any]]:
    """Return an SQL condition, with its parameters, that the column ``{}`` is a primary key in *series*."""
    keys = series.order_by().values("pk").query
    if not keys.where and not keys.is_sliced:
        return "true", []
    try:
        sql, parameters = keys.sql_with_params()
    except EmptyResultSet:
        return _NOTHING, []
    return f"{{}} IN ({sql})", [*parameters]


def _shifted_to(end: int, hours_end: NDArray[np.int64], means: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return *means* shifted so that the last hour of each row ends at *end*.

    A row of *means* has one number for each of the 24 hours before its *hours_end*. Shifting drops its oldest
    hours and adds NaN for the hours between *hours_end* and *end*. Rows whose *hours_end* is later than *end*
    stay as they are.
    """
    hour = HOUR // timedelta(microseconds=1)
    shifts = np.clip((end - np.maximum(hours_end, NEVER // 2)) // hour, 0, HOURS)
    shifted = np.full(means.shape, np.nan, np.float32)
    for shift in np.unique(shifts):
        rows = shifts == shift
        shifted[rows, : HOURS - shift] = means[rows, shift:]
    return shifted
