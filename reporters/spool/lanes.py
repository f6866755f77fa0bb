"""What is delivered next: fresh records beside the backlog. The state is in memory only."""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from reporters.spool.chain_view import LONG_AGO, ChainView, SegmentView
from reporters.spool.records import Part, Record
from reporters.spool.selection import Selection

FRESH_SECONDS = 60.0  # after this time a record counts as backlog
_MOST_FRESH = 1000  # older ones count as backlog
_FRESH_SHARE = 0.5


class Lane(Enum):
    """Which records to deliver: those of the last minute, all others, or both together."""

    FRESH = "fresh"
    BACKLOG = "backlog"
    BOTH = "both"


class Lanes:
    """The two lanes of a delivery.

    *report_lost* is called with each segment of the backlog that is read; *monotonic* returns seconds.
    """

    def __init__(
        self, report_lost: Callable[[ChainView, SegmentView], None], monotonic: Callable[[], float]
    ) -> None:
        self._report_lost, self._monotonic = report_lost, monotonic
        self._fresh: deque[tuple[uuid.UUID, int, float]] = deque(maxlen=_MOST_FRESH)
        self._in_flight: dict[uuid.UUID, set[int]] = defaultdict(set)

    def add_fresh(self, chain: uuid.UUID, record: Record) -> None:
        self._fresh.append((chain, record.sequence, self._monotonic()))

    def batch(
        self, views: Mapping[uuid.UUID, ChainView], most_records: int, most_bytes: int, lane: Lane
    ) -> list[Part]:
        """Choose records of *lane* and put them in flight."""
        selection = Selection(most_records, most_bytes)
        waiting = self._waiting(views)
        if lane is not Lane.BACKLOG:
            self._choose_fresh(selection, views, waiting, 1.0 if lane is Lane.FRESH else _FRESH_SHARE)
        if lane is not Lane.FRESH:
            self._choose_oldest(selection, views, waiting if lane is Lane.BACKLOG else {})
        parts = selection.parts()
        for part in parts:
            self._in_flight[part.chain].update(record.sequence for record in part.records)
        return parts

    def release(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._in_flight[part.chain].difference_update(record.sequence for record in part.records)

    def forget(self, chain: uuid.UUID, first: int, last: int) -> None:
        """Forget the records from *first* to *last* of *chain*: they need no delivery."""
        self._in_flight[chain] -= {number for number in self._in_flight[chain] if first <= number <= last}
        if not self._in_flight[chain]:
            del self._in_flight[chain]

    def _waiting(self, views: Mapping[uuid.UUID, ChainView]) -> Mapping[uuid.UUID, set[int]]:
        """Return the fresh records that need delivery and are not in flight."""
        since = self._monotonic() - FRESH_SECONDS
        fresh = [
            (chain, sequence, at)
            for chain, sequence, at in self._fresh
            if at > since and chain in views and sequence not in views[chain].logs.done
        ]
        self._fresh = deque(fresh, maxlen=_MOST_FRESH)
        waiting: dict[uuid.UUID, set[int]] = defaultdict(set)
        for chain, sequence, _ in fresh:
            if sequence not in self._in_flight[chain]:
                waiting[chain].add(sequence)
        return waiting

    def _choose_fresh(
        self,
        selection: Selection,
        views: Mapping[uuid.UUID, ChainView],
        waiting: Mapping[uuid.UUID, set[int]],
        share: float,
    ) -> None:
        for chain, sequences in waiting.items():
            for record in views[chain].find_all(sorted(sequences)):
                if not selection.add(chain, record, share=share):
                    return

    def _choose_oldest(
        self,
        selection: Selection,
        views: Mapping[uuid.UUID, ChainView],
        left_out: Mapping[uuid.UUID, set[int]],
    ) -> None:
        backlog = [
            (segment.created_at or LONG_AGO, str(view.chain), segment.first, view, segment)
            for view in views.values()
            for segment in view.segments
            if not view.is_done(segment)
        ]
        for _, _, _, view, segment in sorted(backlog, key=lambda each: each[:3]):
            records = view.load(segment)
            self._report_lost(view, segment)
            skipped = self._in_flight[view.chain] | left_out.get(view.chain, set())
            is_complete = all(
                selection.add(view.chain, record)
                for record in records
                if record.sequence not in skipped and (view.chain, record.sequence) not in selection
            )
            view.unload(segment)
            if not is_complete:
                return
