"""Take away what is older than its suite keeps it: in small pieces, in nobody's way, one at a time.

First the horizons move on: from then on nothing is taken that is before them. When everybody is done who may
not have known that, what is before them goes, oldest first: of samples only when they have been rolled up for
the last time, in the same transaction. A part of a table that nobody needs any more is dropped whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import OperationalError, transaction

from monitor.db.advisory_locks import AdvisoryLock, is_lock_timeout, session_lock, session_lock_timeout
from monitor.depot.engines import engine, rollup_tables
from monitor.depot.engines.engine import Hours
from monitor.depot.retention import expiry_sql
from monitor.depot.rollups import worker
from monitor.models.retention_cutoff import DataKind

if TYPE_CHECKING:
    from monitor.depot.engines.engine import Part
    from monitor.depot.retention.expiry_sql import Group

DAY = timedelta(days=1)
ROWS_AT_ONCE = 5_000  # in one transaction, about; a day of one series is never divided
MOST_SERIES, MOST_DAYS = 200, 366
STRAYS_AT_ONCE = 10  # metrics
PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 0.05


class _Later(Exception):
    """Not now; says why. What is left is done by the next call."""


@dataclass
class RetentionResult:
    """What was taken away: rows by kind, and parts that were dropped. *later*: why something is left."""

    rows: dict[DataKind, int] = field(default_factory=lambda: dict.fromkeys(DataKind, 0))
    dropped: list[Part] = field(default_factory=list)
    later: str = ""


@dataclass
class _Pace:
    """How many days of how many series go at once: as many as make ``ROWS_AT_ONCE``."""

    days: int = 1
    series: int = 20

    def told(self, rows: int) -> None:
        if rows > ROWS_AT_ONCE:
            self.days, self.series = max(self.days // 2, 1), max(self.series // 2, 1)
        elif rows < ROWS_AT_ONCE // 4:
            self.days, self.series = min(2 * self.days, MOST_DAYS), min(2 * self.series, MOST_SERIES)


def apply_retention(
    now: datetime, *, within_seconds: float = float("inf"), patience_seconds: float = PATIENCE_SECONDS
) -> RetentionResult:
    """Take away what is too old at *now*; may be called again at any time, and killed at any time.

    After *within_seconds* it ends with the piece that it is at. For whoever is in its way it waits for
    *patience_seconds*.
    """
    done = RetentionResult()
    with session_lock(AdvisoryLock.RETENTION) as is_ours:
        if not is_ours:
            done.later = "somebody else is at it"
            return done
        try:
            _retain(now, time.monotonic() + within_seconds, patience_seconds, done)
        except _Later as later:
            done.later = str(later)
        except OperationalError as error:
            if not is_lock_timeout(error):
                raise
            done.later = f"somebody holds what is to go: {error}".strip()
    return done


def _retain(now: datetime, until: float, patience_seconds: float, done: RetentionResult) -> None:
    expiry_sql.advance(now)
    last = expiry_sql.kept_from(now)
    if expiry_sql.pending():
        _wait_for_older_transactions(patience_seconds)
    for kind in DataKind:
        for part in _parts(kind):
            if kind in last and part.start < last[kind]:
                _empty(kind, part, last[kind], until, done)
        if kind == DataKind.SAMPLES:
            _take_away_left(until, done)
        _sweep(kind, until, done)


def _parts(kind: DataKind) -> list[Part]:
    """Those of its table, oldest first."""
    table = expiry_sql.TABLES[kind]
    return engine().parts(table.name) if table.is_parted else [expiry_sql.whole(kind)]


def _wait_for_older_transactions(patience_seconds: float) -> None:
    """Who began before the horizons moved may still store what is before them."""
    moved = expiry_sql.this_moment()
    give_up = time.monotonic() + patience_seconds
    while count := expiry_sql.older_transactions(moved):
        if time.monotonic() > give_up:
            raise _Later(f"{count} transactions are under way that may write what is to go")
        time.sleep(PAUSE_SECONDS)


def _is_over(kind: DataKind, part: Part, last: datetime) -> bool:
    return expiry_sql.TABLES[kind].is_parted and part.end <= last


def _empty(kind: DataKind, part: Part, last: datetime, until: float, done: RetentionResult) -> None:
    """Take away what is too old in *part*: all of it together, if nobody needs anything there.

    Only of samples something is to be made before. That takes its time, and somebody may need the part when
    it is over: then it stays, and ``_take_away_left`` finds what nobody needs.
    """
    drop = _is_over(kind, part, last) and not expiry_sql.is_needed(kind, part)
    if drop and kind != DataKind.SAMPLES:
        drop = _drop(kind, part, done)
    for group in expiry_sql.groups(kind, part):
        _take_away_of(kind, group, until, done, keep_rows=drop)
    if drop and kind == DataKind.SAMPLES:
        _drop(kind, part, done)


def _drop(kind: DataKind, part: Part, done: RetentionResult) -> bool:
    """Whether nobody has come meanwhile who needs *part*: then it is dropped."""
    is_dropped = engine().drop(part, lambda: expiry_sql.is_needed(kind, part))
    if is_dropped:
        done.dropped.append(part)
    return is_dropped


def _take_away_left(until: float, done: RetentionResult) -> None:
    """Take away samples that were to go with their part, which has stayed."""
    for group in expiry_sql.left_behind():
        _take_away_of(DataKind.SAMPLES, group, until, done, keep_rows=False)


def _take_away_of(
    kind: DataKind, group: Group, until: float, done: RetentionResult, *, keep_rows: bool
) -> None:
    for rows in _thin(kind, group, keep_rows=keep_rows):
        done.rows[kind] += rows
        if time.monotonic() >= until:
            raise _Later("its time is over")


def _sweep(kind: DataKind, until: float, done: RetentionResult) -> None:
    """Take away what is of metrics that are gone, with their series: nobody can ask for it."""
    if kind == DataKind.REPORTS:  # they go with their runs
        return
    strays = expiry_sql.strays(kind)
    for at in range(0, len(strays), STRAYS_AT_ONCE):
        if time.monotonic() >= until:
            raise _Later("its time is over")
        done.rows[kind] += expiry_sql.delete_strays(kind, strays[at : at + STRAYS_AT_ONCE])


def _thin(kind: DataKind, group: Group, *, keep_rows: bool) -> Iterator[int]:
    """Take the stretch of *group* away piece by piece; how many rows each was."""
    pace, left = _Pace(), list(group.series)
    while left:
        some, left = left[: pace.series], left[pace.series :]
        piece = expiry_sql.Group(some, group.start, group.stop)
        start = expiry_sql.oldest(kind, piece)
        if start is None:
            expiry_sql.gone(kind, some, group.stop)
            yield 0
        else:
            yield from _piecewise(kind, piece, _midnight(start), pace, keep_rows=keep_rows)


def _piecewise(
    kind: DataKind, group: Group, start: datetime, pace: _Pace, *, keep_rows: bool
) -> Iterator[int]:
    while start < group.stop:
        stop = min(start + pace.days * DAY, group.stop)
        rows = _take_away(kind, expiry_sql.Group(group.series, start, stop), keep_rows=keep_rows)
        pace.told(rows)
        start = stop
        yield rows


def _take_away(kind: DataKind, piece: Group, *, keep_rows: bool) -> int:
    """In one transaction; *keep_rows* where the whole part is to be dropped afterwards."""
    if kind != DataKind.SAMPLES:
        with session_lock_timeout():
            return _delete(kind, piece, keep_rows=keep_rows)
    with _while_nobody_rolls(), session_lock_timeout():
        return _delete(kind, piece, keep_rows=keep_rows)


@transaction.atomic
def _delete(kind: DataKind, piece: Group, *, keep_rows: bool) -> int:
    if kind == DataKind.SAMPLES:
        rollup_tables.roll([Hours(series, _days(piece)) for series in piece.series], sparse=0)
        expiry_sql.unmark(piece.series, piece.start, piece.stop)
    rows = 0 if keep_rows else expiry_sql.delete(kind, piece.series, piece.start, piece.stop)
    expiry_sql.gone(kind, piece.series, piece.stop)
    return rows


@contextmanager
def _while_nobody_rolls() -> Iterator[None]:
    """Rollups are not made of samples that are being taken away."""
    try:
        with worker.alone(PATIENCE_SECONDS):
            yield
    except worker.RollupInProgress:
        raise _Later("somebody rolls up") from None


def _days(piece: Group) -> list[datetime]:
    return [piece.start + number * DAY for number in range((piece.stop - piece.start).days)]


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
