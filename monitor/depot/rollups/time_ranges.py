"""Stretches of time, and the whole days in them. All in microseconds since 1970, UTC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.db.timestamps import micros

if TYPE_CHECKING:
    from numpy.typing import NDArray

HOUR, DAY = 3_600_000_000, 86_400_000_000
_MOST_RANGES = 16  # of samples in one statement; more are put together, with the days between them


@dataclass(frozen=True)
class Stretch:
    """From *start* until before *end*, and the whole days in it; with ``has_days=False`` there are none."""

    start: datetime
    end: datetime
    has_days: bool

    @property
    def first_day(self) -> int:
        return -(-micros(self.start) // DAY) * DAY

    @property
    def last_day(self) -> int:
        """The midnight that ends the last of them."""
        return max(micros(self.end) // DAY * DAY, self.first_day) if self.has_days else self.first_day

    @property
    def first_hour(self) -> int:
        return -(-micros(self.start) // HOUR) * HOUR

    @property
    def last_hour(self) -> int:
        """What ends the last whole hour."""
        return max(micros(self.end) // HOUR * HOUR, self.first_hour)

    @property
    def edges(self) -> list[tuple[int, int]]:
        """What is left on both sides of them."""
        start, end = micros(self.start), micros(self.end)
        sides = ((start, self.first_day), (self.last_day, end))
        ranges = ((start, end),) if self.first_day == self.last_day else sides
        return [(first, last) for first, last in ranges if first < last]


def between(
    rolled: NDArray[np.int64],
    days: NDArray[np.int64],
    changed: NDArray[np.int64],
    stretch: Stretch,
    gone: int,
) -> list[tuple[int, int]]:
    """What of the whole days is to be read from samples: those that have changed, and those of *days* of
    which nothing is *rolled*; but from before *gone* there are no samples."""
    sparse = np.setdiff1d(days, rolled // DAY * DAY)
    wanted = np.union1d(changed, sparse)
    wanted = wanted[(wanted >= max(stretch.first_day, gone)) & (wanted < stretch.last_day)]
    if not len(wanted):
        return []
    gaps = np.diff(wanted)
    least = np.sort(gaps)[-_MOST_RANGES + 1] if len(gaps) >= _MOST_RANGES else DAY
    groups = np.split(wanted, np.flatnonzero(gaps > max(least, DAY)) + 1)
    return [(int(group[0]), int(group[-1]) + DAY) for group in groups]


def since(time: int, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """*ranges* without what is from before *time*."""
    return [(max(start, time), end) for start, end in ranges if end > time]


def days_of(ranges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """The midnights in *ranges*, which begin with one each."""
    return np.concatenate([np.arange(start, end, DAY) for start, end in ranges])
