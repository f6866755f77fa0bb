"""Availability and reliability from status timelines, as grid operations define them. Pure.

A timeline has a status for every second, not a count of tests: a service that is tested more often does not
weigh more. With the seconds of each status in a period:

    availability = up / (total - unknown)
    reliability  = up / (total - unknown - scheduled downtime)

The statuses of several services combine as in the default operations profile of ARGO, the availability
framework of the European Grid Infrastructure: AND is as bad as the worst service, OR as good as the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.int64]  # since 1970
Statuses = NDArray[np.int8]


class TimelineStatus(IntEnum):
    UP = 0
    UNKNOWN = 1
    SCHEDULED = 2  # in a maintenance window
    DOWN = 3


# The rank of each status, by its number; the status with the higher rank wins.
_AND_RANKS = np.array([0, 1, 2, 3], np.int8)
_OR_RANKS = np.array([3, 1, 0, 2], np.int8)


@dataclass(frozen=True)
class Timeline:
    """Statuses from *starts[0]* until *end*: *statuses[i]* holds from *starts[i]* until the next start.

    Starts ascend strictly; neighbouring statuses differ.
    """

    starts: Seconds
    statuses: Statuses
    end: int

    def at(self, times: Seconds) -> Statuses:
        """Return the status at each of *times*, which lie in the timeline."""
        return self.statuses[np.searchsorted(self.starts, times, side="right") - 1]


@dataclass(frozen=True)
class StatusSeconds:
    """The seconds of a period in each status."""

    up: int
    unknown: int
    scheduled: int
    down: int

    @property
    def availability(self) -> float | None:
        """The share of the known time in which the service was up; None if no time is known."""
        return _share(self.up, self.up + self.scheduled + self.down)

    @property
    def reliability(self) -> float | None:
        """The same share without scheduled downtime; None if no time remains."""
        return _share(self.up, self.up + self.down)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def of_results(
    slots: Seconds, has_passed: NDArray[np.bool_], valid_until: Seconds, *, start: int, end: int
) -> Timeline:
    """Return the timeline of a series from *start* until *end*.

    A result counts from its slot until the next one, at most until its *valid_until*; after that the status
    is unknown. Results before *start* count as long as they are valid. *slots* ascend strictly, and no
    *valid_until* lies before its slot.
    """
    if not len(slots):
        return constant(TimelineStatus.UNKNOWN, start, end)
    until = np.minimum(valid_until, np.append(slots[1:], np.iinfo(np.int64).max))
    statuses = np.where(has_passed, np.int8(TimelineStatus.UP), np.int8(TimelineStatus.DOWN))
    starts = np.concatenate([[min(start, int(slots[0]) - 1)], np.stack([slots, until], axis=1).ravel()])
    unknown = np.full(len(slots), TimelineStatus.UNKNOWN, np.int8)
    all_statuses = np.concatenate([unknown[:1], np.stack([statuses, unknown], axis=1).ravel()])
    is_last = np.append(starts[1:] > starts[:-1], True)  # a result that ends where the next one begins
    return _cut(starts[is_last], all_statuses[is_last], start, end)


def of_periods(
    periods: Iterable[tuple[int, int]], status: TimelineStatus, other: TimelineStatus, *, start: int, end: int
) -> Timeline:
    """Return a timeline with *status* within the *periods* (start, end), which may overlap, else *other*."""
    merged: list[list[int]] = []
    for begin, finish in sorted(periods):
        if finish <= begin:
            continue
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], finish)
        else:
            merged.append([begin, finish])
    edges = [edge for period in merged for edge in period]
    first = min([start, *(edge - 1 for edge in edges[:1])])
    starts = np.array([first, *edges], np.int64)
    statuses = np.array([other, *([status, other] * len(merged))], np.int8)
    return _cut(starts, statuses, start, end)


def constant(status: TimelineStatus, start: int, end: int) -> Timeline:
    return Timeline(np.array([start], np.int64), np.array([status], np.int8), end)


def all_of(timelines: Sequence[Timeline]) -> Timeline:
    """Combine services that are all needed (AND): down wins over scheduled, unknown and up."""
    return _combine(timelines, _highest(_AND_RANKS))


def any_of(timelines: Sequence[Timeline]) -> Timeline:
    """Combine services of which one suffices (OR): up wins over down, unknown and scheduled."""
    return _combine(timelines, _highest(_OR_RANKS))


def with_maintenance(timeline: Timeline, windows: Iterable[tuple[int, int]]) -> Timeline:
    """Return *timeline* with scheduled downtime within the *windows*, whatever the results there were."""
    start = int(timeline.starts[0])
    scheduled = of_periods(
        windows, TimelineStatus.SCHEDULED, TimelineStatus.UP, start=start, end=timeline.end
    )

    def override(statuses: Statuses) -> Statuses:
        is_scheduled = statuses[1] == TimelineStatus.SCHEDULED
        return np.asarray(np.where(is_scheduled, statuses[1], statuses[0]), np.int8)

    return _combine([timeline, scheduled], override)


def account(timeline: Timeline, start: int, end: int) -> StatusSeconds:
    """Return the seconds of each status between *start* and *end*, which lie in the timeline."""
    edges = np.clip(np.append(timeline.starts, timeline.end), start, end)
    seconds = np.bincount(timeline.statuses, weights=np.diff(edges), minlength=len(TimelineStatus))
    up, unknown, scheduled, down = (int(each) for each in seconds)
    return StatusSeconds(up, unknown, scheduled, down)


def _highest(ranks: NDArray[np.int8]) -> Callable[[Statuses], Statuses]:
    by_rank: Statuses = np.argsort(ranks).astype(np.int8)

    def choose(statuses: Statuses) -> Statuses:
        return np.asarray(by_rank[ranks[statuses].max(axis=0)], np.int8)

    return choose


def _combine(timelines: Sequence[Timeline], choose: Callable[[Statuses], Statuses]) -> Timeline:
    """Return the timeline whose status is what *choose* returns for those of *timelines* at each time.

    All have the same start and end. *choose* gets an array of shape (timeline, time).
    """
    starts = np.unique(np.concatenate([each.starts for each in timelines]))
    statuses = choose(np.stack([each.at(starts) for each in timelines]))
    return _cut(starts, statuses, int(starts[0]), timelines[0].end)


def _cut(starts: Seconds, statuses: Statuses, start: int, end: int) -> Timeline:
    """Return the part from *start* until *end*, with equal neighbours joined."""
    first = int(np.searchsorted(starts, start, side="right")) - 1
    last = int(np.searchsorted(starts, end, side="left"))
    starts, statuses = starts[first:last].copy(), statuses[first:last]
    starts[0] = start
    is_change = np.append(True, statuses[1:] != statuses[:-1])
    return Timeline(starts[is_change], statuses[is_change], end)
