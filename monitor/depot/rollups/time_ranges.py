"""Split a time range into whole days and the rest. Numbers are microseconds since 1970, UTC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import micros

if TYPE_CHECKING:
    from numpy.typing import NDArray

HOUR, DAY = 3_600_000_000, 86_400_000_000
_MOST_RANGES = 16  # per statement; more ranges are joined to this number, with the days between them


@dataclass(frozen=True)
class TimeRange:
    """The time from *start* until before *end*; with ``has_days=False`` no day counts as a whole day."""

    start: datetime
    end: datetime
    has_days: bool

    @property
    def first_day(self) -> int:
        return -(-micros(self.start) // DAY) * DAY

    @property
    def last_day(self) -> int:
        """Return the midnight that ends the last whole day."""
        return max(micros(self.end) // DAY * DAY, self.first_day) if self.has_days else self.first_day

    @property
    def first_hour(self) -> int:
        return -(-micros(self.start) // HOUR) * HOUR

    @property
    def last_hour(self) -> int:
        """Return the end of the last whole hour."""
        return max(micros(self.end) // HOUR * HOUR, self.first_hour)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Return (start, end) of the parts of the range outside its whole days, at most two."""
        start, end = micros(self.start), micros(self.end)
        sides = ((start, self.first_day), (self.last_day, end))
        ranges = ((start, end),) if self.first_day == self.last_day else sides
        return [(first, last) for first, last in ranges if first < last]


def sampled_days(
    rolled: NDArray[np.int64],
    days: NDArray[np.int64],
    changed: NDArray[np.int64],
    time_range: TimeRange,
    gone: int,
) -> list[tuple[int, int]]:
    """Return the ranges (start, end) of whole days for which a query must read samples instead of rollups.

    A day needs its samples if it is in *changed* (its rollups are outdated), or if it is in *days* and no
    rollup in *rolled* starts on it. Days are given by their midnights, rollups by their starts. Days outside
    *time_range* are left out. Days before *gone* are left out too, because their samples were deleted.
    Adjacent days form one range; if there are too many ranges, the nearest ranges are joined.
    """
    sparse = np.setdiff1d(days, rolled // DAY * DAY)
    wanted = np.union1d(changed, sparse)
    wanted = wanted[(wanted >= max(time_range.first_day, gone)) & (wanted < time_range.last_day)]
    if not len(wanted):
        return []
    gaps = np.diff(wanted)
    least = np.sort(gaps)[-_MOST_RANGES + 1] if len(gaps) >= _MOST_RANGES else DAY
    groups = np.split(wanted, np.flatnonzero(gaps > max(least, DAY)) + 1)
    return [(int(group[0]), int(group[-1]) + DAY) for group in groups]


def after(time: int, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of *ranges* from *time* on; a range without such a part is left out."""
    return [(max(start, time), end) for start, end in ranges if end > time]


def days_of(ranges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the midnights in *ranges*; each range begins at midnight."""
    return np.concatenate([np.arange(start, end, DAY) for start, end in ranges])
