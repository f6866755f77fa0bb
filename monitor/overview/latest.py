"""What series came to last, very many at once: state, age, and how long they took in the last 24 hours.

The number of queries does not depend on how many there are, and no history is gone through.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from numpy.typing import NDArray

from monitor.db.timestamps import micros
from monitor.models import Run
from monitor.models.latest_run import HOURS
from monitor.models.run import State
from monitor.overview import column_arrays
from monitor.overview import latest_sql as depot
from monitor.overview.column_arrays import NEVER

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet

Columns = Mapping[str, tuple[str, str]]  # kind and SQL, by name: see ``monitor.overview.column_arrays.read``
HOUR = timedelta(hours=1)
LETTERS = depot.LETTERS  # the state of each letter
UNKNOWN = NEVER  # a time that is not
_NOTHING = {  # of a series without a run that ended
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
    "means": ("means", f"coalesce(means, {depot.NO_MEANS})"),
}


@dataclass(frozen=True)
class Latest:
    """A row of each series; all arrays have the same length. Their order is none.

    Times are microseconds since 1970, UTC; ``UNKNOWN`` without a run that ended (or that says when). *state*
    is the first letter of the state, see ``LETTERS``, and a space without a run. *age* is how many seconds
    ago it ended, NaN without. *means* (a row of 24 each) are the mean totals of passed runs, in seconds, of
    the 24 hours before *hours_end*, oldest first, NaN for none: these are the hours up to the present one.
    Only where values are from later than now they are the hours up to the newest.
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
    """Of each of *series*, at *now*."""
    named = keys(series, {"name": ("name", "name")})
    found = read(series, named["series"], _COLUMNS)
    end = micros(now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + HOUR)
    found["means"] = _up_to(end, found["hours_end"], found["means"])
    found["hours_end"] = np.maximum(found["hours_end"], end)
    ended_at = np.where(found["ended_at"] == NEVER, found["slot"], found["ended_at"])
    # The clock of a reporter may be ahead of ours.
    age = np.where(ended_at == NEVER, np.nan, np.maximum(micros(now) - ended_at, 0) / 1e6)
    return Latest(**named, **found, age=age)


@dataclass(frozen=True)
class Recent:
    """The newest run of a series that tells something, by key and slot, and (state, resource that failed) of
    the newest that ended, oldest first."""

    run: uuid.UUID | None
    slot: datetime | None
    trend: tuple[tuple[State, str], ...]


NOTHING_YET = Recent(None, None, ())


def recent(series: SeriesQuerySet) -> dict[int, Recent]:
    """Of each of *series*, by key, for few of them; without those of which nothing has ended."""
    condition, parameters = _in(series)
    relation = depot.now(condition.format("series_id"), with_hours=False)
    query = (
        "SELECT series.id, run, slot, outcomes, failed_resources FROM monitor_series AS series"  # noqa: S608
        f" JOIN {relation} AS latest ON latest.series_id = series.id"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, parameters * 2)
        return {
            key: Recent(run, slot, _trend(outcomes, blamed))
            for key, run, slot, outcomes, blamed in cursor.fetchall()
        }


def last_runs(newest: Mapping[int, Recent]) -> dict[int, Run]:
    """The runs that tell something, by key of their series, in one query."""
    runs = {one.run: one.slot for one in newest.values() if one.run and one.slot}
    found = Run.objects.filter(pk__in=list(runs), slot__in=set(runs.values()))
    return {run.series_id: run for run in found}


def _trend(outcomes: str, blamed: Sequence[str]) -> tuple[tuple[State, str], ...]:
    states = [LETTERS[letter] for letter in outcomes]
    return tuple(zip(states, blamed or [""] * len(states), strict=True))


def keys(series: SeriesQuerySet, wanted: Columns) -> dict[str, NDArray[Any]]:
    """The keys of *series* as ``series``, and *wanted* columns of the table of series."""
    condition, parameters = _in(series)
    source = f"FROM monitor_series WHERE {condition.format('id')}"
    return column_arrays.read({"series": ("integer", "id"), **wanted}, "id", source, parameters)


def read(series: SeriesQuerySet, order: NDArray[np.int64], wanted: Columns) -> dict[str, NDArray[Any]]:
    """Columns *wanted* of what *series* came to last; a row for each key in *order*. Without means that is
    less work.

    Both tables are read by themselves, and put together here: that takes half as long as a join.
    """
    condition, parameters = _in(series)
    relation = depot.now(condition.format("series_id"), with_hours="means" in wanted)
    source = f"FROM {relation} AS latest"
    found = column_arrays.read(
        {"of": ("integer", "series_id"), **wanted}, "series_id", source, parameters * 2
    )
    place = places(found.pop("of"), order)
    return {name: placed(column, place, _NOTHING.get(name, 0)) for name, column in found.items()}


def places(of: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where in *of* each of *order* is; -1 where it is not."""
    if not len(of):
        return np.full(len(order), -1)
    sorting = np.argsort(of)
    place = sorting[np.searchsorted(of, order, sorter=sorting).clip(max=len(of) - 1)]
    return np.where(of[place] == order, place, -1)


def placed(column: NDArray[Any], place: NDArray[np.int64], nothing: object) -> NDArray[Any]:
    if not len(column):
        return np.full((len(place), *column.shape[1:]), nothing, column.dtype)
    found = column[place]
    missing = place < 0
    if missing.any():
        found[missing] = np.array(nothing, column.dtype) if column.dtype.kind != "V" else b""
    return found


def _in(series: SeriesQuerySet) -> tuple[str, list[Any]]:
    """A condition on a key, and its parameters: that it is of *series*."""
    these = series.order_by().values("pk").query
    if not these.where and not these.is_sliced:
        return "true", []
    try:
        said, parameters = these.sql_with_params()
    except EmptyResultSet:
        return "false", []
    return f"{{}} IN ({said})", [*parameters]


def _up_to(end: int, hours_end: NDArray[np.int64], means: NDArray[np.float32]) -> NDArray[np.float32]:
    """*means*, each of the hours before its *hours_end*, as those of the hours before *end*; later ones stay
    where they are."""
    hour = HOUR // timedelta(microseconds=1)
    later = np.clip((end - np.maximum(hours_end, NEVER // 2)) // hour, 0, HOURS)
    found = np.full(means.shape, np.nan, np.float32)
    for shift in np.unique(later):
        these = later == shift
        found[these, : HOURS - shift] = means[these, shift:]
    return found
