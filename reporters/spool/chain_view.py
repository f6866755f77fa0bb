"""A chain as a process that delivers it sees it: what its directory holds, and what needs delivery."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from reporters.spool.files import read_from, write_whole
from reporters.spool.ranges import Ranges
from reporters.spool.receipt_log import DELIVERED, DROPPED, ReceiptLogs
from reporters.spool.records import Record, encode
from reporters.spool.segment import Damage, Scan, file_name, first_of, header, parse_header, scan

RETIRED = ".retired"
LONG_AGO = datetime.min.replace(tzinfo=timezone.utc)
_HEADER_BYTES = 200


@dataclass(eq=False)
class SegmentView:
    """A segment file. *records* are its undelivered records, None while they are not in memory."""

    first: int
    path: Path
    size: int = 0
    created_at: datetime | None = None
    records: list[Record] | None = None
    last: Record | None = None  # the last sound record; its body is not kept
    end: int = 0  # offset behind the last sound record
    damage: list[Damage] = field(default_factory=list)
    rest: Damage | None = None


@dataclass(frozen=True)
class Lost:
    """Records *first* to *last* cannot be read; *data* are the bytes in their place."""

    first: int
    last: int
    reason: str
    data: bytes


class ChainView:
    """The chain in *directory*. With *is_backlog*, the records that are there at first have not appeared.

    Methods that read or write files raise OSError.
    """

    def __init__(self, directory: Path, *, is_backlog: bool) -> None:
        self.directory = directory
        self.chain = uuid.UUID(directory.name.partition(".")[0])
        self.logs = ReceiptLogs(directory)
        self.segments: list[SegmentView] = []
        self.next, self.head = 0, ""
        self._is_read = not is_backlog

    @property
    def is_retired(self) -> bool:
        return self.directory.name.endswith(RETIRED)

    @property
    def bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def started_at(self) -> datetime:
        """When the oldest segment was begun."""
        return next((each.created_at for each in self.segments if each.created_at), LONG_AGO)

    def refresh(self) -> list[Record]:
        """Read what is new in the directory; return the records that appeared."""
        names = os.listdir(self.directory)  # noqa: PTH208  # names suffice
        self.logs.refresh(names)
        firsts = sorted(first for first in map(first_of, names) if first is not None)
        known = {segment.first: segment for segment in self.segments}
        changed_from = self.segments[-1].first if self.segments else 0
        self.segments = [segment for segment in (known.get(f) or self._open(f) for f in firsts) if segment]
        is_first, self._is_read = not self._is_read, True
        if is_first:
            self._find_head()
            return []
        appeared: list[Record] = []
        for segment in self.segments:
            if segment.first >= changed_from:
                appeared += self._read_on(segment)
            self.unload(segment)
        return appeared

    def load(self, segment: SegmentView) -> list[Record]:
        """Return the undelivered records of *segment*, read if they are not in memory."""
        self._read_on(segment)
        done = self.logs.done
        records = [record for record in segment.records or () if record.sequence not in done]
        segment.records = records
        return records

    def unload(self, segment: SegmentView) -> None:
        """Free the memory of the records of *segment*, unless it is the last one."""
        if self.segments and segment is not self.segments[-1]:
            segment.records = None

    def range_of(self, segment: SegmentView) -> tuple[int, int]:
        """Return the first and the last sequence number that belong into *segment*; last < first: none."""
        if segment not in self.segments:  # removed
            return segment.first, segment.first - 1
        index = self.segments.index(segment)
        if index + 1 < len(self.segments):
            return segment.first, self.segments[index + 1].first - 1
        return segment.first, self.next - 1

    def pending_count(self) -> int:
        """Return how many records need delivery, without reading them; damaged records count."""
        return sum(
            last - first + 1 - self.logs.done.count(first, last)
            for first, last in map(self.range_of, self.segments)
            if first <= last
        )

    def is_done(self, segment: SegmentView) -> bool:
        first, last = self.range_of(segment)
        return first > last or not self.logs.done.missing(first, last)

    def oldest(self) -> SegmentView | None:
        """Return the oldest segment with a record that needs delivery."""
        return next((segment for segment in self.segments if not self.is_done(segment)), None)

    def has_gaps(self, segment: SegmentView) -> bool:
        """Return whether the loaded *segment* has damage or lacks records, so ``lost`` may return some."""
        first, last = self.range_of(segment)
        expected = last - first + 1 - self.logs.done.count(first, last) if first <= last else 0
        return segment.rest is not None or len(segment.records or ()) < expected

    def lost(self, segment: SegmentView, *, is_dead: bool) -> list[Lost]:
        """Return the records of the loaded *segment* that are neither readable nor done.

        Damage behind the last record of a live chain is none yet: the writer may still be writing.
        """
        first, last = self.range_of(segment)
        is_tail = segment is self.segments[-1]
        damage = list(segment.damage)
        if segment.rest is not None and (is_dead or not is_tail):
            damage.append(segment.rest)
            last = max(last, segment.rest.after + 1, segment.first) if is_tail else last
        readable = Ranges((record.sequence, record.sequence) for record in segment.records or ())
        if all(not readable.missing(*absent) for absent in self.logs.done.missing(first, last)):
            return []
        # Another process may have delivered them and removed the file: it wrote its log before that.
        self.logs.refresh(os.listdir(self.directory))  # noqa: PTH208  # names suffice
        return [
            _lost(*absent, damage)
            for low, high in self.logs.done.missing(first, last)
            for absent in readable.missing(low, high)
        ]

    def hash_of(self, sequence: int) -> str | None:
        """Return the hash of the record *sequence*; None if no file has it."""
        record = self.find(sequence)
        return None if record is None else record.hash

    def find(self, sequence: int) -> Record | None:
        """Return the record *sequence*, delivered or not; None if no file has it."""
        for segment in self.segments:
            first, last = self.range_of(segment)
            if first <= sequence <= last:
                with contextlib.suppress(FileNotFoundError):  # removed by another process
                    records = [*(segment.records or ()), *self._scan(segment, 0, None).records]
                    return next((record for record in records if record.sequence == sequence), None)
        return None

    def find_all(self, sequences: Iterable[int]) -> Iterator[Record]:
        """Yield the undelivered records among *sequences*, in order."""
        wanted = set(sequences)
        for segment in self.segments:
            first, last = self.range_of(segment)
            if wanted and first <= max(wanted) and last >= min(wanted):
                for record in self.load(segment):
                    if record.sequence in wanted:
                        yield record
                self.unload(segment)

    def mark_delivered(self, first: int, last: int, hash_: str) -> None:
        self.logs.add(DELIVERED, first, last, hash_)

    def mark_dropped(self, first: int, last: int) -> None:
        self.logs.add(DROPPED, first, last, "-")

    def remove_done(self, *, is_durable: bool) -> int:
        """Remove the segments before the last one that need no delivery; return how many."""
        last_with_record = max(
            (segment.first for segment in self.segments if segment.first < self.next), default=0
        )  # it has the head of the chain
        complete = [
            segment for segment in self.segments if segment.first < last_with_record and self.is_done(segment)
        ]
        if complete:
            # Only the logs tell what lay between segments from lost records, so they must be on disk first.
            is_inside = any(
                not self.is_done(segment) for segment in self.segments if segment.first < complete[-1].first
            )
            if is_inside:
                self.logs.compact(self.segments[0].first, is_durable=is_durable, is_forced=True)
            self.segments = [segment for segment in self.segments if segment not in complete]
            for segment in complete:
                segment.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a full disk
            self.logs.compact(self.segments[0].first, is_durable=False, is_forced=False)
        return len(complete)

    def keep_only(self, segment: SegmentView, records: Iterable[Record], *, is_durable: bool) -> None:
        """Rewrite *segment*, which is not the last, with *records* only."""
        kept = list(records)
        line = header(self.chain, segment.created_at) if segment.created_at is not None else b""
        data = line + b"".join(map(encode, kept))
        write_whole(segment.path, data, is_durable=is_durable)
        segment.size, segment.records, segment.end = len(data), kept, len(data)
        segment.damage, segment.rest = [], None

    def remove(self) -> None:
        """Remove the directory."""
        for name in sorted(os.listdir(self.directory), key=lambda name: first_of(name) is None):  # noqa: PTH208
            (self.directory / name).unlink(missing_ok=True)
        self.directory.rmdir()

    def _open(self, first: int) -> SegmentView | None:
        """Return the segment that begins with record *first*; None if another process has removed it."""
        path = self.directory / file_name(first)
        try:
            with path.open("rb") as file:
                created_at, _ = parse_header(file.read(_HEADER_BYTES), self.chain)
                return SegmentView(first, path, os.fstat(file.fileno()).st_size, created_at)
        except FileNotFoundError:
            return None

    def _read_on(self, segment: SegmentView) -> list[Record]:
        """Read the records that *segment* got since it was read; return them."""
        with contextlib.suppress(FileNotFoundError):  # removed by another process
            segment.size = segment.path.stat().st_size
            if segment.records is None or segment.size < segment.end:
                segment.records, segment.end, segment.last, segment.damage = [], 0, None, []
            if segment.size > segment.end:
                found = self._scan(segment, segment.end, segment.last)
                segment.records += found.records
                segment.end, segment.rest = found.end, found.rest
                segment.damage += found.damage
                if found.records:
                    segment.last = found.records[-1]
                    self._advance(segment.last)
                return found.records
        return []

    def _scan(self, segment: SegmentView, offset: int, before: Record | None) -> Scan:
        data = read_from(segment.path, offset)
        begin = parse_header(data, self.chain)[1] if offset == 0 else 0
        return scan(data[begin:], offset + begin, self.chain, [before] if before else [])

    def _advance(self, record: Record) -> None:
        if record.sequence >= self.next:
            self.next, self.head = record.sequence + 1, record.hash

    def _find_head(self) -> None:
        """Read segments from the end until one has a record: the last may have none yet."""
        for segment in reversed(self.segments):
            if self._read_on(segment):
                break


def _lost(first: int, last: int, damage: list[Damage]) -> Lost:
    """Return what is known of the lost records *first* to *last*."""
    here = [each for each in damage if each.after < last] if damage else []
    if not here:
        return Lost(first, last, "absent from its segment", b"")
    nearest = max(here, key=lambda each: each.after)
    return Lost(first, last, f"damaged: {nearest.reason}", nearest.data)
