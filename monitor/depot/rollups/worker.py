"""Roll up what has changed: bounded work per call, by one at a time, lost by nobody who is killed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.utils.module_loading import import_string

from monitor.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.engines import engine
from monitor.depot.rollups import dirty_hours

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WITHIN_SECONDS = 2.0  # of one call: ticks may have to wait so long
BATCH_SECONDS = 0.25  # the next batch is larger after a shorter one, and smaller after a longer one
GATHERED_AT_ONCE = 20_000
LEAST_MARKS, MOST_MARKS = 25, 5_000
MOST_DAYS = 30
FOR_EVER = datetime.max.replace(tzinfo=UTC)
PAUSE_SECONDS = 0.1


_subscribers: list[str] = []


def subscribe(path: str) -> None:
    """Have the function at *path* called with the (series, hour) pairs that changed, in the transaction that
    gathers them.

    Rooms above the depot subscribe when Django starts (``monitor.apps``), so the depot knows none of them.
    The path is imported at the first change: starting a command need not load what it does not use.
    """
    if path not in _subscribers:
        _subscribers.append(path)


class RollupInProgress(Exception):
    """Somebody else rolls up, and will not be waited for any longer."""


@dataclass(frozen=True)
class Progress:
    """How many hours of all series have been rolled up, of how many."""

    done: int
    hours: int


def roll(now: datetime, *, within_seconds: float = WITHIN_SECONDS) -> bool:
    """Roll up hours that are over; whether there is more to do.

    An hour that still fills is marked again with every report: it is read from its samples until it is over.
    The last batch may take longer than *within_seconds*; what somebody else rolls up is left to him.
    """
    with session_lock(AdvisoryLock.ROLLUP) as is_ours:
        if not is_ours:
            return False
        until = time.monotonic() + within_seconds
        if gather():
            return True
        before = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        some = _until(
            until, LEAST_MARKS, MOST_MARKS, lambda size: dirty_hours.some(before=before, at_most=size)
        )
        return some or _until(until, 1, MOST_DAYS, lambda size: dirty_hours.every(before=before, days=size))


def roll_all() -> None:
    """Roll up everything that is marked, however long it takes."""
    with exclusive():
        while gather():
            pass
        while taken := dirty_hours.some(before=FOR_EVER, at_most=MOST_MARKS):
            _take(taken)
    for _ in _roll_every():
        pass


def rebuild(start: datetime | None = None, end: datetime | None = None) -> Iterator[Progress]:
    """Make all rollups from *start* until *end* anew, by default of all samples that there are.

    What is not yet made anew is read from samples; who is killed has it done by ``roll``, or goes on by
    calling this again. Rollups of parts whose samples have been dropped stay as they are.
    """
    with exclusive():
        while gather():
            pass
        for first, last in _with_samples(start, end):
            dirty_hours.mark_every(first, last)
            engine().drop_rollups(first, last)
    hours = dirty_hours.every_left()
    yield Progress(0, hours)
    for left in _roll_every():
        yield Progress(hours - left, hours)


def gather() -> bool:
    """Merge new dirty hours and tell the subscribers, in one transaction; whether there may be more.

    Readers do what is left of that, so it is done more often than rolling up, and beside it.
    """
    with transaction.atomic():
        changed = dirty_hours.gather(GATHERED_AT_ONCE)
        if changed:
            for path in _subscribers:
                import_string(path)(changed)
    return len(changed) == GATHERED_AT_ONCE


def _roll_every() -> Iterator[int]:
    """Roll up what is marked for all series, batch by batch; yields how many hours are left."""
    with exclusive():
        days = 1
        while taken := dirty_hours.every(before=FOR_EVER, days=days):
            took_seconds = _take(taken)
            days = _sized(days, took_seconds / 8, 1, MOST_DAYS)
            yield dirty_hours.every_left()


def _until(until: float, least: int, most: int, read: Callable[[int], dirty_hours.Marks]) -> bool:
    """Roll up batch after batch of *read* until time is over; whether there may be more."""
    size = least
    while taken := read(size):
        size = _sized(size, _take(taken), least, most)
        if time.monotonic() >= until:
            return True
    return False


def _take(taken: dirty_hours.Marks) -> float:
    """Roll *taken* up; how many seconds that took. Until they are forgotten nobody trusts the rollups."""
    began = time.monotonic()
    engine().roll_up(taken.hours)
    dirty_hours.forget(taken)
    return time.monotonic() - began


def _sized(size: int, took_seconds: float, least: int, most: int) -> int:
    return min(2 * size, most) if took_seconds < BATCH_SECONDS / 2 else max(size // 2, least)


def _with_samples(start: datetime | None, end: datetime | None) -> list[tuple[datetime, datetime]]:
    parts = [(part.start, part.end) for part in engine().partitions("monitor_sample")]
    bounded = [
        (max(first, start) if start else first, min(last, end) if end else last) for first, last in parts
    ]
    return [(first, last) for first, last in bounded if first < last]


@contextmanager
def exclusive(patience_seconds: float = math.inf) -> Iterator[None]:
    """Wait until nobody else rolls up: never longer than a call of ``roll``, or than a rebuild.

    Raises:
        RollupInProgress: he still did when *patience_seconds* were over.
    """
    give_up = time.monotonic() + patience_seconds
    while True:
        with session_lock(AdvisoryLock.ROLLUP) as is_ours:
            if is_ours:
                yield
                return
        if time.monotonic() > give_up:
            raise RollupInProgress
        time.sleep(PAUSE_SECONDS)
