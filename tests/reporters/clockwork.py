"""When slots are due, said another way: not by offsets and folds, but by looking at the clock.

A clock is a table: for every minute of a window, the latest that it has shown so far. A slot is due at the
first minute at which that is no earlier than the slot's local time. Expressions are read by cronsim. Nothing
here comes from what it judges.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo

import numpy as np
from cronsim import CronSim
from numpy.typing import NDArray

MINUTE = timedelta(minutes=1)
DAY_MINUTES = 24 * 60
FIRST_DAY = date(1970, 1, 1)

Minutes = NDArray[np.int64]  # since 1970: of UTC, or as a clock on a wall shows them


def minute(time: datetime) -> int:
    """Of UTC."""
    return int(time.timestamp() // 60)


def latest_shown(clock: tzinfo, first: int, last: int) -> Minutes:
    """For each minute of UTC from *first* to *last*: the latest that *clock* has shown since *first*."""
    ahead = np.empty(last - first + 1, dtype=np.int64)
    for start in range(0, len(ahead), DAY_MINUTES):
        _look(clock, first, ahead, start, min(start + DAY_MINUTES, len(ahead)))
    latest: Minutes = np.maximum.accumulate(np.arange(first, last + 1) + ahead)
    return latest


def _look(clock: tzinfo, first: int, ahead: Minutes, start: int, end: int) -> None:
    """Write how far *clock* is ahead of UTC, down to the minute where that changes."""
    at_start, at_end = _ahead(clock, first + start), _ahead(clock, first + end)
    if at_start == at_end or end - start == 1:
        ahead[start:end] = at_start
        return
    middle = (start + end) // 2
    _look(clock, first, ahead, start, middle)
    _look(clock, first, ahead, middle, end)


def _ahead(clock: tzinfo, at: int) -> int:
    offset = datetime.fromtimestamp(at * 60, clock).utcoffset()
    assert offset is not None
    return offset // MINUTE


def local_times(plain: str, first: int, last: int) -> Minutes:
    """The minutes that plain cron matches, as a wall shows them, from *first*'s day to *last*'s."""
    read = CronSim(plain, datetime(1970, 1, 1, tzinfo=UTC))
    days = [FIRST_DAY + timedelta(days=n) for n in range(first // DAY_MINUTES, last // DAY_MINUTES + 1)]
    matching = [day.month in read.months and read.match_day(day) for day in days]
    midnights = np.flatnonzero(matching) + first // DAY_MINUTES
    of_day = [hour * 60 + minute for hour in sorted(read.hours) for minute in sorted(read.minutes)]
    times: Minutes = np.add.outer(midnights * DAY_MINUTES, np.array(of_day)).ravel()
    return times


def due(plain: str, clock: tzinfo, after: datetime, until: datetime) -> Minutes:
    """The minutes of UTC in (*after*, *until*] at which *plain* is due, each once."""
    first, last = minute(after) - 2 * DAY_MINUTES, minute(until)  # two: a clock can jump over a whole day
    return due_by(
        latest_shown(clock, first, last), local_times(plain, first, last + DAY_MINUTES), after, until
    )


def due_by(latest: Minutes, local: Minutes, after: datetime, until: datetime) -> Minutes:
    """As ``due``, of a table that ends at *until*."""
    first = minute(until) - len(latest) + 1
    times = np.searchsorted(latest, local) + first
    in_window = (times > minute(after)) & (times <= minute(until))
    once = np.diff(times, prepend=0) > 0  # several that the clock jumped over are due together
    found: Minutes = times[in_window & once]
    return found
