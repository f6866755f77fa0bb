"""The records of one delivery: fresh ones beside the oldest, within bounds."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable

from reporters.spool.records import Part, Record, chain_line, encoded_bytes


class Selection:
    """Records chosen for one request of at most *most_records* and *most_bytes*.

    One record is always accepted, whatever its size.
    """

    def __init__(self, most_records: int, most_bytes: int) -> None:
        self._most_records = most_records
        self._most_bytes = most_bytes
        self._records: dict[uuid.UUID, dict[int, Record]] = defaultdict(dict)
        self._count = self._bytes = 0

    def __contains__(self, key: tuple[uuid.UUID, int]) -> bool:
        chain, sequence = key
        return sequence in self._records.get(chain, ())

    def add(self, chain: uuid.UUID, record: Record, *, share: float = 1.0) -> bool:
        """Choose *record*; return False if it does not fit into *share* of the bounds."""
        # Each record may become a part of its own.
        total = self._bytes + len(chain_line(chain)) + encoded_bytes(record)
        is_over = self._count + 1 > self._most_records * share or total > self._most_bytes * share
        if self._count and is_over:
            return False
        self._records[chain][record.sequence] = record
        self._count, self._bytes = self._count + 1, total
        return True

    def parts(self) -> list[Part]:
        """Return the chosen records as parts: consecutive, linked records of one chain each."""
        return [
            Part(chain, run)
            for chain, records in self._records.items()
            for run in _linked(records[sequence] for sequence in sorted(records))
        ]


def _linked(records: Iterable[Record]) -> list[tuple[Record, ...]]:
    runs: list[list[Record]] = []
    for record in records:
        last = runs[-1][-1] if runs else None
        if last is not None and (last.sequence + 1, last.hash) == (record.sequence, record.previous):
            runs[-1].append(record)
        else:
            runs.append([record])
    return [tuple(run) for run in runs]
