"""Find the slots of additional runs: the first microsecond from a time on that no run of the series has."""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import UTC, datetime, timedelta

from monitor.core.db import binary

MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READ = timedelta(milliseconds=1)  # of slots, at a time
# Besides the runs of the ledger, the slots of ids: the run of an id may be stored later.
_TAKEN = """
SELECT wanted.series, taken.slot
FROM unnest(%b::bigint[], %b::timestamptz[]) AS wanted (series, since), LATERAL (
    SELECT slot FROM monitor_run WHERE series_id = wanted.series
        AND slot >= wanted.since AND slot < wanted.since + interval '1 millisecond'
        AND slot BETWEEN %b AND %b
    UNION ALL
    SELECT slot FROM monitor_reportedstart WHERE series_id = wanted.series
        AND slot >= wanted.since AND slot < wanted.since + interval '1 millisecond') AS taken
"""


class FreeSlots:
    """The slots that are free at times of series; the caller has a lock that serialises choosing slots.

    *wanted*: the pairs of a series' key and a time that will be asked for, read in one statement.
    """

    def __init__(self, wanted: Iterable[tuple[int, datetime]]) -> None:
        self._taken: dict[tuple[int, datetime], set[datetime]] = {}  # by millisecond, as far as read
        self._given: set[tuple[int, datetime]] = set()
        self._read({(series, _floor(time)) for series, time in wanted})

    def next(self, series: int, time: datetime) -> datetime:
        """Return the first free slot of *series* at *time* or later."""
        slot = time
        while True:
            millisecond = _floor(slot)
            if (series, millisecond) not in self._taken:
                self._read({(series, millisecond)})
            taken = self._taken[series, millisecond]
            while slot in taken or (series, slot) in self._given:
                slot += MICROSECOND
            if _floor(slot) == millisecond:
                return slot

    def take(self, series: int, slot: datetime) -> None:
        """Count *slot* as taken from now on."""
        self._given.add((series, slot))

    def _read(self, wanted: Set[tuple[int, datetime]]) -> None:
        if not wanted:
            return
        series, times = zip(*wanted, strict=True)
        with binary.cursor() as cursor:
            bounds = [min(times), max(times) + _READ]
            cursor.execute(_TAKEN, [list(series), list(times), *bounds])
            rows = cursor.fetchall()
        self._taken |= {key: set() for key in wanted}
        for key, slot in rows:
            self._taken[key, _floor(slot)].add(slot)


def _floor(time: datetime) -> datetime:
    """Return the millisecond of *time*."""
    return time - (time - _EPOCH) % _READ
