"""Reduce columns to fewer points for a chart without losing extremes (M4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_POINTS = 4  # of a bin: first, last, lowest, highest


@dataclass(frozen=True)
class Bins:
    """Columns of time bins of equal length, in order of time, without empty bins.

    *start* is in microseconds since 1970; *n* is the number of values of each bin.
    """

    start: NDArray[np.int64]
    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.start)


def select_points(times: NDArray[np.int64], values: NDArray[np.float64], points: int) -> NDArray[np.intp]:
    """Return, in order, the indices of at most *points* (at least ``LEAST_POINTS``) values to draw.

    *times* ascend, *values* are finite. If there are at most *points* values, all are kept. Otherwise time is
    divided into ``points / 4`` bins, and the first, last, lowest and highest value of each bin are kept. A
    line through them looks like a line through all values (Jugel, Jerzak, Hackenbroich, Markl: M4: a
    visualization-oriented time series data aggregation, PVLDB 7, 2014).
    """
    if len(times) <= points:
        return np.arange(len(times))
    starts = _starts((times - times[0]) * (points // LEAST_POINTS) // (times[-1] - times[0] + 1))
    ends = np.append(starts[1:], len(times)) - 1
    lowest, highest = (_first_of(values, extreme, starts) for extreme in (np.minimum, np.maximum))
    return np.unique(np.concatenate([starts, ends, lowest, highest]))


def bin_values(times: NDArray[np.int64], values: NDArray[np.float64], span: int) -> Bins:
    """Aggregate *values* at ascending *times* to bins of *span* microseconds."""
    numbers = times // span
    starts = _starts(numbers)
    n = np.diff(starts, append=len(times))
    return Bins(
        numbers[starts] * span, n, *_aggregate(starts, n, values, values, values, np.ones(len(times)))
    )


def merge_bins(bins: Bins, span: int, points: int) -> tuple[Bins, int]:
    """Merge *bins* of *span* microseconds to at most *points* bins; return these and their length.

    The length is a multiple of *span*; the first bin keeps its start.
    """
    if not len(bins):
        return bins, span
    numbers = (bins.start - bins.start[0]) // span
    factor = -(-int(numbers[-1] + 1) // points)
    merged_numbers = numbers // factor
    starts = _starts(merged_numbers)
    n = np.add.reduceat(bins.n, starts)
    columns = _aggregate(starts, n, bins.mean, bins.lowest, bins.highest, bins.n)
    return Bins(bins.start[0] + merged_numbers[starts] * factor * span, n, *columns), factor * span


def _starts(numbers: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the index of the first number of each sequence of equal *numbers*."""
    return np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 1))


def _aggregate(
    starts: NDArray[np.intp],
    n: NDArray[np.int64],
    means: NDArray[np.float64],
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    weights: NDArray[np.generic],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted mean, the lowest and the highest value of each group.

    A group begins at each of *starts*; *n* is the sum of the *weights* of each group.
    """
    if not len(starts):
        return means[:0], lowest[:0], highest[:0]
    shares = weights / np.repeat(
        n, np.diff(starts, append=len(means))
    )  # weigh before adding: a sum of all values may overflow
    return (
        np.add.reduceat(means * shares, starts),
        np.minimum.reduceat(lowest, starts),
        np.maximum.reduceat(highest, starts),
    )


def _first_of(values: NDArray[np.float64], extreme: np.ufunc, starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the index of the first *extreme* value of each group; a group begins at each of *starts*."""
    of_each = np.repeat(extreme.reduceat(values, starts), np.diff(starts, append=len(values)))
    matches = np.flatnonzero(values == of_each)
    return matches[np.searchsorted(matches, starts)]
