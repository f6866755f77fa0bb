"""Fewer points that show the same: what is drawn keeps its extremes. Functions of columns alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_POINTS = 4  # of a stretch: its first, its last, its lowest, its highest


@dataclass(frozen=True)
class Rolled:
    """Values by stretches of time that are as long as each other, column by column, in order of time.

    *start*: of each stretch, microseconds since 1970; *n* values lie in it, at least one.
    """

    start: NDArray[np.int64]
    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.start)


def kept(times: NDArray[np.int64], values: NDArray[np.float64], points: int) -> NDArray[np.intp]:
    """The indices, in order, of at most *points* (``LEAST_POINTS`` or more) that show *values*, finite
    numbers, at *times*, which ascend. All, if they are no more than that.

    Of each of ``points / 4`` stretches of time as long as each other: the first, the last, a lowest and a
    highest. Lines through them look as those through all (M4; Jugel, Jerzak, Hackenbroich, Markl: M4: a
    visualization-oriented time series data aggregation, PVLDB 7, 2014).
    """
    if len(times) <= points:
        return np.arange(len(times))
    starts = _starts((times - times[0]) * (points // LEAST_POINTS) // (times[-1] - times[0] + 1))
    ends = np.append(starts[1:], len(times)) - 1
    lowest, highest = (_first_of(values, extreme, starts) for extreme in (np.minimum, np.maximum))
    return np.unique(np.concatenate([starts, ends, lowest, highest]))


def rolled_up(times: NDArray[np.int64], values: NDArray[np.float64], span: int) -> Rolled:
    """*values* at *times*, which ascend, by stretches of *span* microseconds since 1970."""
    begun = times // span
    starts = _starts(begun)
    n = np.diff(starts, append=len(times))
    return Rolled(begun[starts] * span, n, *_totals(starts, n, values, values, values, np.ones(len(times))))


def merged(rolled: Rolled, span: int, points: int) -> tuple[Rolled, int]:
    """At most *points* stretches that are whole multiples of *span* microseconds, the length of those of
    *rolled*; and how long they are. They begin with the first."""
    if not len(rolled):
        return rolled, span
    number = (rolled.start - rolled.start[0]) // span
    together = -(-int(number[-1] + 1) // points)
    begun = number // together
    starts = _starts(begun)
    n = np.add.reduceat(rolled.n, starts)
    columns = _totals(starts, n, rolled.mean, rolled.lowest, rolled.highest, rolled.n)
    return Rolled(rolled.start[0] + begun[starts] * together * span, n, *columns), together * span


def _starts(numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where each run of equal *numbers* begins."""
    return np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1))


def _totals(
    starts: NDArray[np.intp],
    n: NDArray[np.int64],
    means: NDArray[np.float64],
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    weights: NDArray[np.generic],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean, lowest and highest of what begins at each of *starts* and has *n* values."""
    if not len(starts):
        return means[:0], lowest[:0], highest[:0]
    shares = weights / np.repeat(
        n, np.diff(starts, append=len(means))
    )  # first: a sum of all may be no number
    return (
        np.add.reduceat(means * shares, starts),
        np.minimum.reduceat(lowest, starts),
        np.maximum.reduceat(highest, starts),
    )


def _first_of(values: NDArray[np.float64], extreme: np.ufunc, starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """The index of the first value that is the *extreme* one of what begins at each of *starts*."""
    of_each = np.repeat(extreme.reduceat(values, starts), np.diff(starts, append=len(values)))
    there = np.flatnonzero(values == of_each)
    return there[np.searchsorted(there, starts)]
