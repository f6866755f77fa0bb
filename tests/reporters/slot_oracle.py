"""An independent computation of slots, for comparison with ``reporters.schedule``.

Instead of offsets and folds it uses a table of what a clock shows: for every minute of a window, the latest
local time that the clock has shown so far. A slot is due at the first minute at which that is no earlier than
the slot's local time. cronsim parses the expressions, so that nothing comes from the code under test.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo

import numpy as np
from cronsim import CronSim
from numpy.typing import NDArray

MINUTE = timedelta(minutes=1)
DAY_MINUTES = 24 * 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY = date(1970, 1, 1)

Minutes = NDArray[np.int64]  # since 1970, in UTC or in local time


def minute(time: datetime) -> int:
    """Return the number of whole minutes from 1970 to *time*."""
    return int(time.timestamp() // 60)


def latest_shown(clock: tzinfo, first: int, last: int) -> Minutes:
    """Return, by minute from *first* to *last*, the latest local time that *clock* has shown."""
    offsets = np.empty(last - first + 1, dtype=np.int64)
    for start in range(0, len(offsets), DAY_MINUTES):
        _write_offsets(clock, first, offsets, start, min(start + DAY_MINUTES, len(offsets)))
    latest: Minutes = np.maximum.accumulate(np.arange(first, last + 1) + offsets)
    return latest


def _write_offsets(clock: tzinfo, first: int, offsets: Minutes, start: int, end: int) -> None:
    """Write the offsets from UTC of minutes *start* to *end*; bisect to the minute at which they change."""
    at_start, at_end = _offset(clock, first + start), _offset(clock, first + end)
    if at_start == at_end or end - start == 1:
        offsets[start:end] = at_start
        return
    middle = (start + end) // 2
    _write_offsets(clock, first, offsets, start, middle)
    _write_offsets(clock, first, offsets, middle, end)


def _offset(clock: tzinfo, at: int) -> int:
    offset = datetime.fromtimestamp(at * 60, clock).utcoffset()
    assert offset is not None
    return offset // MINUTE


def local_times(plain: str, first: int, last: int) -> Minutes:
    """Return the local minutes that plain cron matches, from the day of *first* to the day of *last*."""
    cron = CronSim(plain, EPOCH)
    days = [FIRST_DAY + timedelta(days=n) for n in range(first // DAY_MINUTES, last // DAY_MINUTES + 1)]
    matching = [day.month in cron.months and cron.match_day(day) for day in days]
    midnights = np.flatnonzero(matching) + first // DAY_MINUTES
    of_day = [hour * 60 + minute for hour in sorted(cron.hours) for minute in sorted(cron.minutes)]
    times: Minutes = np.add.outer(midnights * DAY_MINUTES, np.array(of_day)).ravel()
    return times


def due(plain: str, clock: tzinfo, after: datetime, until: datetime) -> Minutes:
    """Return the minutes of UTC in (*after*, *until*] at which *plain* is due, each once."""
    first, last = minute(after) - 2 * DAY_MINUTES, minute(until)  # two: a clock can skip a whole day
    return due_by(
        latest_shown(clock, first, last), local_times(plain, first, last + DAY_MINUTES), after, until
    )


def due_by(latest: Minutes, local: Minutes, after: datetime, until: datetime) -> Minutes:
    """Return the same as ``due``, from the table *latest* that ends at *until*."""
    first = minute(until) - len(latest) + 1
    times = np.searchsorted(latest, local) + first
    in_window = (times > minute(after)) & (times <= minute(until))
    once = np.diff(times, prepend=0) > 0  # local times that the clock skipped are due together
    minutes: Minutes = times[in_window & once]
    return minutes
