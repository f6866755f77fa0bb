"""What is delivered next: fresh records beside the backlog. The state is in memory only."""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from reporters.spool.chain_view import LONG_AGO, ChainView, SegmentView
from reporters.spool.records import Part, Record
from reporters.spool.selection import Selection

_MOST_FRESH = 1000  # older ones count as backlog
_FRESH_SHARE = 0.5


class Lanes:
    """The two lanes of a delivery. *report_lost* is called with each segment of the backlog that is read."""

    def __init__(self, report_lost: Callable[[ChainView, SegmentView], None]) -> None:
        self._report_lost = report_lost
        self._fresh: deque[tuple[uuid.UUID, int]] = deque(maxlen=_MOST_FRESH)
        self._in_flight: dict[uuid.UUID, set[int]] = defaultdict(set)

    def add_fresh(self, chain: uuid.UUID, record: Record) -> None:
        self._fresh.append((chain, record.sequence))

    def batch(self, views: Mapping[uuid.UUID, ChainView], most_records: int, most_bytes: int) -> list[Part]:
        """Choose records and put them in flight."""
        selection = Selection(most_records, most_bytes)
        self._choose_fresh(selection, views)
        self._choose_oldest(selection, views)
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

    def _choose_fresh(self, selection: Selection, views: Mapping[uuid.UUID, ChainView]) -> None:
        waiting = [key for key in self._fresh if key[0] in views and key[1] not in views[key[0]].logs.done]
        self._fresh = deque(waiting, maxlen=_MOST_FRESH)
        wanted = defaultdict(list)
        for chain, sequence in waiting:
            if sequence not in self._in_flight[chain]:
                wanted[chain].append(sequence)
        for chain, sequences in wanted.items():
            for record in views[chain].find_all(sequences):
                if not selection.add(chain, record, share=_FRESH_SHARE):
                    return

    def _choose_oldest(self, selection: Selection, views: Mapping[uuid.UUID, ChainView]) -> None:
        backlog = [
            (segment.created_at or LONG_AGO, str(view.chain), segment.first, view, segment)
            for view in views.values()
            for segment in view.segments
            if not view.is_done(segment)
        ]
        for _, _, _, view, segment in sorted(backlog, key=lambda each: each[:3]):
            records = view.load(segment)
            self._report_lost(view, segment)
            is_complete = all(
                selection.add(view.chain, record)
                for record in records
                if record.sequence not in self._in_flight[view.chain]
                and (view.chain, record.sequence) not in selection
            )
            view.unload(segment)
            if not is_complete:
                return
