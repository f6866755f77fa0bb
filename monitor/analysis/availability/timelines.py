"""Availability and reliability from status timelines, as grid operations define them. Pure.

A timeline has a status for every second, not a count of tests: a service that is tested more often does not
weigh more. With the seconds of each status in a period:

    availability = up / (total - unknown)
    reliability  = up / (total - unknown - scheduled downtime)

The statuses of several services combine as in the default operations profile of ARGO, the availability
framework of the European Grid Infrastructure: AND is as bad as the worst service, OR as good as the best.

Every function treats the timelines of many owners (series, services or sites) at once: a month of a hundred
thousand series is a few operations on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Statuses = NDArray[np.int8]
Flags = NDArray[np.bool_]


class TimelineStatus(IntEnum):
    UP = 0
    UNKNOWN = 1
    SCHEDULED = 2  # in a maintenance window
    DOWN = 3
    NOT_COUNTED = 4  # the owner is left out of combinations


_COUNTED = 4  # statuses
# From the strongest to the weakest, as the tables of ARGO say.
_AND = (TimelineStatus.DOWN, TimelineStatus.SCHEDULED, TimelineStatus.UNKNOWN, TimelineStatus.UP)
_OR = (TimelineStatus.UP, TimelineStatus.DOWN, TimelineStatus.UNKNOWN, TimelineStatus.SCHEDULED)


@dataclass(frozen=True)
class Timelines:
    """The statuses of *count* owners from *start* until *end*, in seconds since 1970.

    Row *i* says that the owner *owners[i]* has *statuses[i]* from *starts[i]* until its next row. Rows are
    sorted by owner and start, every owner has a row at *start*, and neighbouring statuses differ.
    """

    owners: Integers
    starts: Integers
    statuses: Statuses
    count: int
    start: int
    end: int

    def at(self, owners: Integers, times: Integers) -> Statuses:
        """Return the status of each of *owners* at each of *times*, which lie in the timelines."""
        return self.statuses[self.rows_at(owners, times)]

    def rows_at(self, owners: Integers, times: Integers) -> Integers:
        """Return the number of the row that holds for each of *owners* at each of *times*, up to *end*."""
        rows = np.searchsorted(self._keys(self.owners, self.starts), self._keys(owners, times), side="right")
        return rows - 1

    def _keys(self, owners: Integers, times: Integers) -> Integers:
        return owners * (self.end - self.start + 1) + (times - self.start)


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
    owners: Integers,
    slots: Integers,
    has_passed: Flags,
    valid_until: Integers,
    *,
    count: int,
    start: int,
    end: int,
) -> Timelines:
    """Return the timelines of *count* series from their results, sorted by owner and slot.

    A result counts from its slot until the next one of its owner, at most until its *valid_until*; after that
    the status is unknown. Results before *start* count as long as they are valid; of results with the same
    slot, the last one counts. No *valid_until* lies before its slot.
    """
    next_slots = np.full(len(slots), np.iinfo(np.int64).max)
    is_followed = owners[1:] == owners[:-1]
    next_slots[:-1][is_followed] = slots[1:][is_followed]
    until = np.minimum(valid_until, next_slots)
    statuses = np.where(has_passed, np.int8(TimelineStatus.UP), np.int8(TimelineStatus.DOWN))
    unknown = np.full(len(slots), TimelineStatus.UNKNOWN, np.int8)
    return _canonical(
        np.repeat(owners, 2),
        np.stack([slots, until], axis=1).ravel(),
        np.stack([statuses, unknown], axis=1).ravel(),
        initial=np.full(count, TimelineStatus.UNKNOWN, np.int8),
        start=start,
        end=end,
    )


def of_periods(
    owners: Integers,
    begins: Integers,
    ends: Integers,
    status: TimelineStatus,
    other: TimelineStatus,
    *,
    count: int,
    start: int,
    end: int,
) -> Timelines:
    """Return timelines with *status* within the periods of each owner, which may overlap, else *other*."""
    has_length = ends > begins
    both = np.concatenate([owners[has_length]] * 2)
    times = np.concatenate([begins[has_length], ends[has_length]])
    steps = np.repeat(np.array([1, -1]), int(has_length.sum()))
    order = np.lexsort((times, both))
    is_inside = np.cumsum(steps[order]) > 0  # every period ends, so the sum is 0 where the next owner begins
    return _canonical(
        both[order],
        times[order],
        np.where(is_inside, np.int8(status), np.int8(other)),
        initial=np.full(count, other, np.int8),
        start=start,
        end=end,
    )


def combine(timelines: Timelines, groups: Integers, needs_all: Flags) -> Timelines:
    """Return the timeline of each group of owners; *groups* has the group of each owner.

    A group that *needs_all* of its owners (AND) is as bad as the worst of them, any other one (OR) as good as
    the best. A group without counted owners is unknown.
    """
    of_rows = groups[timelines.owners]
    order = np.lexsort((timelines.starts, of_rows))
    previous = np.full(len(of_rows), TimelineStatus.NOT_COUNTED, np.int8)
    is_followed = timelines.owners[1:] == timelines.owners[:-1]
    previous[1:][is_followed] = timelines.statuses[:-1][is_followed]
    now, before, sorted_groups = timelines.statuses[order], previous[order], of_rows[order]
    present = [_is_present(now, before, sorted_groups, status) for status in range(_COUNTED)]
    is_and = needs_all[sorted_groups]
    statuses = np.where(is_and, _strongest(present, _AND), _strongest(present, _OR))
    return _canonical(
        sorted_groups,
        timelines.starts[order],
        statuses,
        initial=np.full(len(needs_all), TimelineStatus.UNKNOWN, np.int8),
        start=timelines.start,
        end=timelines.end,
    )


def _is_present(now: Statuses, before: Statuses, groups: Integers, status: int) -> Flags:
    """Return for each row, sorted by group and time, whether an owner of its group has *status* then."""
    counts = np.cumsum((now == status).astype(np.int32) - (before == status))
    first = np.flatnonzero(np.append(True, groups[1:] != groups[:-1])[: len(groups)])
    lengths = np.diff(np.append(first, len(groups)))
    before_group = np.append(0, counts)[first]
    return np.asarray(counts > np.repeat(before_group, lengths))


def _strongest(present: list[Flags], ranking: tuple[TimelineStatus, ...]) -> Statuses:
    chosen = np.select(
        [present[status] for status in ranking], [int(status) for status in ranking], TimelineStatus.UNKNOWN
    )
    return chosen.astype(np.int8)


def leave_out_unknown(timelines: Timelines, edges: Integers) -> Timelines:
    """Return the timelines with ``NOT_COUNTED`` in each period in which nothing is known of the owner.

    The periods lie between neighbouring *edges*, which ascend from the start to the end of the timelines.
    """
    seconds = account(timelines, edges)
    is_out = seconds[:, :, TimelineStatus.UNKNOWN] == np.diff(edges)
    begins = is_out.copy()
    begins[:, 1:] &= ~is_out[:, :-1]
    ends = np.zeros_like(is_out)
    ends[:, 1:] = ~is_out[:, 1:] & is_out[:, :-1]
    owners, periods = np.nonzero(begins | ends)
    times = edges[periods]
    statuses = timelines.at(owners, times)
    statuses[begins[owners, periods]] = TimelineStatus.NOT_COUNTED
    rows = timelines.rows_at(owners, times) + 1  # a new row wins over one with the same start
    return _canonical(
        np.insert(timelines.owners, rows, owners),
        np.insert(timelines.starts, rows, times),
        np.insert(timelines.statuses, rows, statuses),
        initial=np.full(timelines.count, TimelineStatus.UNKNOWN, np.int8),
        start=timelines.start,
        end=timelines.end,
    )


def with_maintenance(timelines: Timelines, windows: Timelines) -> Timelines:
    """Return *timelines* with scheduled downtime where *windows* have it, whatever results there were."""
    owners = np.concatenate([timelines.owners, windows.owners])
    starts = np.concatenate([timelines.starts, windows.starts])
    order = np.lexsort((starts, owners))
    owners, starts = owners[order], starts[order]
    is_scheduled = windows.at(owners, starts) == TimelineStatus.SCHEDULED
    return _canonical(
        owners,
        starts,
        np.where(is_scheduled, np.int8(TimelineStatus.SCHEDULED), timelines.at(owners, starts)),
        initial=np.full(timelines.count, TimelineStatus.UNKNOWN, np.int8),
        start=timelines.start,
        end=timelines.end,
    )


def account(timelines: Timelines, edges: Integers) -> Integers:
    """Return the seconds of each status between neighbouring *edges*: an array (owner, period, status).

    *edges* ascend and lie between the start and the end of the timelines. ``NOT_COUNTED`` has no column.
    """
    durations = np.diff(np.append(timelines.starts, timelines.start))
    is_last = np.append(timelines.owners[1:] != timelines.owners[:-1], True)[: len(durations)]
    durations[is_last] = timelines.end - timelines.starts[is_last]
    owners = np.repeat(np.arange(timelines.count), len(edges))
    times = np.tile(edges, timelines.count)
    rows = timelines.rows_at(owners, times)
    in_row = times - timelines.starts[rows]
    seconds = np.empty((timelines.count, len(edges) - 1, _COUNTED), np.int64)
    for status in range(_COUNTED):
        has_status = timelines.statuses == status
        before = np.append(0, np.cumsum(durations * has_status))
        until = before[rows] + in_row * has_status[rows]
        seconds[:, :, status] = np.diff(until.reshape(timelines.count, len(edges)), axis=1)
    return seconds


def status_seconds(row: Integers) -> StatusSeconds:
    """Return the last axis of ``account`` as a value."""
    up, unknown, scheduled, down = (int(each) for each in row)
    return StatusSeconds(up, unknown, scheduled, down)


def _canonical(
    owners: Integers, starts: Integers, statuses: Statuses, *, initial: Statuses, start: int, end: int
) -> Timelines:
    """Return the timelines of rows that are sorted by owner and start; of rows with the same start the last
    one counts, and the *initial* status of each owner holds until its first row."""
    before = np.searchsorted(owners, np.arange(len(initial)))
    owners = np.insert(owners, before, np.arange(len(initial)))
    starts = np.insert(np.maximum(starts, start), before, start)
    statuses = np.insert(statuses, before, initial)
    is_inside = starts < end
    owners, starts, statuses = owners[is_inside], starts[is_inside], statuses[is_inside]
    is_last = np.ones(len(owners), bool)
    is_last[:-1] = (owners[1:] != owners[:-1]) | (starts[1:] != starts[:-1])
    owners, starts, statuses = owners[is_last], starts[is_last], statuses[is_last]
    is_change = np.ones(len(owners), bool)
    is_change[1:] = (owners[1:] != owners[:-1]) | (statuses[1:] != statuses[:-1])
    return Timelines(owners[is_change], starts[is_change], statuses[is_change], len(initial), start, end)
