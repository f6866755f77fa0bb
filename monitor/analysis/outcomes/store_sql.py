"""The SQL of stored outcomes: blocks, days and failed runs in and out, and the hours that are outdated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from monitor.analysis.outcomes.blocks import (
    HOURS,
    PASSED,
    REPAIRS,
    SERIES,
    DayBlocks,
    PackedDay,
    SuiteDay,
)
from monitor.core.db import binary
from monitor.core.db.timestamps import micros

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from monitor.analysis.outcomes.blocks import Numbers

# A change is noted if the worker may have counted its time: a minute earlier, too, as the clocks of processes
# differ.
_BIN = "date_bin('10 minutes', slot, '2000-01-01 00:00Z')"
_IS_OVER = "bin < date_bin('10 minutes', now() + interval '1 minute', '2000-01-01 00:00Z')"
_NOTE_RUNS = f"""
INSERT INTO monitor_dirtyoutcome (series_id, what, first, last)
SELECT DISTINCT series, 'runs', bin, bin
FROM (
    SELECT series, {_BIN} AS bin FROM unnest(%(series)b::bigint[], %(slots)b::timestamptz[])
        AS changed (series, slot)
) AS changed WHERE {_IS_OVER}
"""  # noqa: S608  # constants
_NOTE_FAILURES = f"""
INSERT INTO monitor_dirtyoutcome (what, first, last)
SELECT DISTINCT 'failures', bin, bin
FROM (SELECT {_BIN} AS bin FROM unnest(%(slots)b::timestamptz[]) AS changed (slot)) AS changed
WHERE {_IS_OVER}
"""  # noqa: S608  # constants
_OLDEST = b"""
SELECT id, series_id, what, first, last FROM monitor_dirtyoutcome
WHERE first < %(until)b ORDER BY first, id LIMIT %(at_most)b
"""
_FORGET = b"DELETE FROM monitor_dirtyoutcome WHERE id = ANY (%(ids)b::bigint[])"
_FORGET_BETWEEN = b"""
DELETE FROM monitor_dirtyoutcome WHERE first >= %(start)b AND first < %(end)b AND first = last
    AND what <> 'suites'
"""
_NOTE_HOURS = b"""
INSERT INTO monitor_dirtyoutcome (what, first, last)
SELECT %(what)b, hour, hour FROM unnest(%(hours)b::timestamptz[]) AS each (hour)
"""
_HOURS_WITH_FAILURES = b"""
SELECT hour FROM monitor_failurehour WHERE hour >= %(first)b AND hour <= %(last)b ORDER BY hour
"""
_DAYS = b"SELECT day FROM monitor_outcomeday ORDER BY day"
_BLOCKS = b"""
SELECT shard, passed, repairs FROM monitor_outcomeblock
WHERE day = %(day)b AND (%(shards)b::bigint[] IS NULL OR shard = ANY (%(shards)b)) ORDER BY shard
"""
_SHARDS = b"SELECT shard FROM monitor_outcomeblock WHERE day = %(day)b"
_DROP_BLOCKS = b"""
DELETE FROM monitor_outcomeblock WHERE day = %(day)b AND shard = ANY (%(shards)b::bigint[])
"""
_WRITE_BLOCKS = b"""
INSERT INTO monitor_outcomeblock (day, shard, passed, repairs)
SELECT %(day)b, * FROM unnest(%(shards)b::bigint[], %(passed)b::bytea[], %(repairs)b::bytea[])
ON CONFLICT (day, shard) DO UPDATE SET passed = EXCLUDED.passed, repairs = EXCLUDED.repairs
"""
_WRITE_DAY = b"""
INSERT INTO monitor_outcomeday (day, shards, passed, suites, suite_passed, suite_repairs)
VALUES (%(day)b, %(shards)b, %(passed)b, %(suites)b, %(suite_passed)b, %(suite_repairs)b)
ON CONFLICT (day) DO UPDATE SET shards = EXCLUDED.shards, passed = EXCLUDED.passed,
    suites = EXCLUDED.suites, suite_passed = EXCLUDED.suite_passed, suite_repairs = EXCLUDED.suite_repairs
"""
_DROP_FAILURES = b"DELETE FROM monitor_failurehour WHERE hour >= %(start)b AND hour < %(end)b"
_WRITE_FAILURES = (
    b"INSERT INTO monitor_failurehour (hour, runs, names) VALUES (%(hour)b, %(runs)b, %(names)b)"
)
_FAILURES = b"""
SELECT hour, runs, names FROM monitor_failurehour WHERE hour >= %(start)b AND hour < %(end)b ORDER BY hour
"""
_FAILURES_UNNAMED = _FAILURES.replace(b"names", b"NULL")
_SERIES_OF_DAYS = b"""
SELECT shards, passed FROM monitor_outcomeday WHERE day >= %(start)b AND day < %(end)b
"""
_SUITES_OF_DAYS = b"""
SELECT day, suites, suite_passed, suite_repairs FROM monitor_outcomeday
WHERE day >= %(start)b AND day < %(end)b ORDER BY day
"""
_OF_DAYS = """
SELECT day, shard, {column} FROM monitor_outcomeblock
WHERE day >= %(start)b AND day < %(end)b AND (%(shards)b::bigint[] IS NULL OR shard = ANY (%(shards)b))
ORDER BY day, shard
"""


class DirtyHours(NamedTuple):
    """A row of ``DirtyOutcome``."""

    id: int
    series: int | None
    what: str
    first: datetime
    last: datetime


@dataclass(frozen=True)
class BlocksOfDay:
    """One column of the blocks of *day*: a row for each of *shards* with values of its series."""

    day: datetime
    shards: Numbers
    values: NDArray[Any]


def note_runs(changed: Collection[tuple[int, datetime]]) -> None:
    """Note that runs of *changed*, pairs of the key of a series and a slot, ended after their hours."""
    if changed:
        series, slots = zip(*changed, strict=True)
        _execute(_NOTE_RUNS.encode(), series=list(series), slots=list(slots))


def note_causes(slots: Collection[datetime]) -> None:
    """Note that the causes of failed runs with these *slots* changed."""
    if slots:
        _execute(_NOTE_FAILURES.encode(), slots=list(slots))


def note_hours(what: str, hours: Collection[datetime]) -> None:
    """Note each of *hours* by itself."""
    _execute(_NOTE_HOURS, what=what, hours=list(hours))


def oldest_dirty(until: datetime, at_most: int) -> list[DirtyHours]:
    """Return the rows of the oldest outdated hours before *until*."""
    return [DirtyHours(*row) for row in _fetch(_OLDEST, until=until, at_most=at_most)]


def forget(rows: Collection[DirtyHours]) -> None:
    _execute(_FORGET, ids=[row.id for row in rows])


def forget_between(start: datetime, end: datetime) -> None:
    """Delete the rows of single hours from *start* until *end*, all of which the caller counts."""
    _execute(_FORGET_BETWEEN, start=start, end=end)


def hours_with_failures(first: datetime, last: datetime) -> list[datetime]:
    """Return the hours from *first* to *last* of which failed runs are stored."""
    return [hour for (hour,) in _fetch(_HOURS_WITH_FAILURES, first=first, last=last)]


def stored_days() -> list[datetime]:
    return [day for (day,) in _fetch(_DAYS)]


def read_blocks(day: datetime, shards: Collection[int] | None = None) -> DayBlocks:
    """Return the stored blocks of *day* with these *shards* (None: all)."""
    keys = None if shards is None else list(shards)
    return DayBlocks.unpack(_fetch(_BLOCKS, day=day, shards=keys))


def series_of_day(day: datetime) -> NDArray[np.int64]:
    """Return the keys of all series in the stored blocks of *day*."""
    return DayBlocks.empty([shard for (shard,) in _fetch(_SHARDS, day=day)]).series


def write_blocks(day: datetime, blocks: DayBlocks) -> None:
    """Store *blocks* of *day*; blocks that are empty are deleted."""
    rows = blocks.pack()
    stored = {shard for shard, _, _ in rows}
    _execute(_DROP_BLOCKS, day=day, shards=[shard for shard in blocks.shards.tolist() if shard not in stored])
    if rows:
        shards, passed, repairs = zip(*rows, strict=True)
        _execute(_WRITE_BLOCKS, day=day, shards=list(shards), passed=list(passed), repairs=list(repairs))


def write_day(day: datetime, packed: PackedDay) -> None:
    _execute(_WRITE_DAY, day=day, **vars(packed))


def replace_failures(
    start: datetime, end: datetime, hours: Collection[tuple[datetime, bytes, Sequence[str]]]
) -> None:
    """Store the packed failed runs of *hours*, with their names, instead of all from *start* until *end*."""
    _execute(_DROP_FAILURES, start=start, end=end)
    with binary.cursor() as cursor:
        for hour, runs, names in hours:
            cursor.execute(_WRITE_FAILURES, {"hour": hour, "runs": runs, "names": list(names)})


def failures_between(
    start: datetime, end: datetime, *, has_names: bool
) -> list[tuple[int, bytes, Sequence[str]]]:
    """Return the hours from *start* until *end*, in microseconds, with their packed runs and names."""
    rows = _fetch(_FAILURES if has_names else _FAILURES_UNNAMED, start=start, end=end)
    return [(micros(hour), runs, names) for hour, runs, names in rows]


def series_of_days(start: datetime, end: datetime) -> list[tuple[bytes, bytes]]:
    """Return the shards and the passed runs of the days from *start* until *end*, packed."""
    return _fetch(_SERIES_OF_DAYS, start=start, end=end)


def suites_of_days(start: datetime, end: datetime) -> list[tuple[datetime, SuiteDay]]:
    """Return the counts by suite of the days from *start* until *end*."""
    rows = _fetch(_SUITES_OF_DAYS, start=start, end=end)
    return [(day, SuiteDay.unpack(*packed)) for day, *packed in rows]


def passed_of_days(start: datetime, end: datetime, shards: Numbers | None = None) -> list[BlocksOfDay]:
    """Return the passed runs by hour and series of the days from *start* until *end*; of some *shards*."""
    rows = _of_days("passed", start, end, shards)
    return [replace(each, values=each.values.view(PASSED).reshape(-1, HOURS, SERIES)) for each in rows]


def repairs_of_days(start: datetime, end: datetime, shards: Numbers) -> list[BlocksOfDay]:
    """Return the sums of outages (``REPAIRS``) of the days from *start* until *end* in *shards*."""
    rows = _of_days("repairs", start, end, shards)
    return [replace(each, values=each.values.view(REPAIRS).reshape(-1, SERIES)) for each in rows]


def _of_days(column: str, start: datetime, end: datetime, shards: Numbers | None) -> list[BlocksOfDay]:
    keys = None if shards is None else shards.tolist()
    statement = _OF_DAYS.format(column=column).encode()
    by_day: dict[datetime, list[tuple[int, bytes]]] = {}
    for day, shard, packed in _fetch(statement, start=start, end=end, shards=keys):
        by_day.setdefault(day, []).append((shard, packed))
    return [
        BlocksOfDay(
            day,
            np.array([shard for shard, _ in rows], np.int64),
            np.frombuffer(b"".join(packed for _, packed in rows), np.uint8),
        )
        for day, rows in by_day.items()
    ]


def shards_of(series: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shards of *series*."""
    return np.unique(series // SERIES)


def _execute(statement: bytes, **parameters: object) -> None:
    with binary.cursor() as cursor:
        cursor.execute(statement, parameters)


def _fetch(statement: bytes, **parameters: object) -> list[Any]:
    with binary.cursor() as cursor:
        return cursor.execute(statement, parameters, binary=True).fetchall()
