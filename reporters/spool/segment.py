"""Segment files: the records of one chain in order, below a line that names format, chain and time.

A body in a segment file contains no newline. So a torn tail, which the death of the writer or a full disk
leaves, is told from damage.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reporters.fields import parse_time
from reporters.report import rfc3339
from reporters.spool.records import CutShort, MalformedRecords, Record, parse_record

_HEADER = re.compile(rb"gridcast segment 1 ([0-9a-f-]{36}) (\S{20,40})\n")
_NAME = re.compile(r"(\d{20})\.segment")
_RECORD = re.compile(rb"record \d")


@dataclass(frozen=True)
class Damage:
    """Bytes between records that are no record; *after* is the last sequence number before them, or -1."""

    after: int
    data: bytes
    reason: str


@dataclass
class Scan:
    """What a segment file holds from some offset on.

    *end* is the offset behind the last record; there the next scan begins. *rest* is the damage behind the
    last record, None if there is nothing or a torn tail.
    """

    records: list[Record] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    end: int = 0
    rest: Damage | None = None


def file_name(first: int) -> str:
    return f"{first:020d}.segment"


def first_of(name: str) -> int | None:
    """Return the sequence number of the first record of the segment file *name*; None for other files."""
    match = _NAME.fullmatch(name)
    return int(match.group(1)) if match else None


def header(chain: uuid.UUID, created_at: datetime) -> bytes:
    return f"gridcast segment 1 {chain} {rfc3339(created_at)}\n".encode()


def parse_header(data: bytes, chain: uuid.UUID) -> tuple[datetime | None, int]:
    """Return the time of the header and its length; (None, 0) if *data* do not begin with one of *chain*."""
    match = _HEADER.match(data)
    if match is None or match.group(1) != str(chain).encode():
        return None, 0
    try:
        return parse_time(match.group(2).decode()), match.end()
    except ValueError:
        return None, 0


def scan(data: bytes, offset: int, chain: uuid.UUID, before: Sequence[Record]) -> Scan:
    """Find the records in *data*, which begin at *offset* of the file, behind the records *before*.

    Sequence numbers rise; some may be absent. A record that does not continue the hashes of its predecessor
    is damage, whatever its own hash.
    """
    found = Scan(end=offset)
    last = before[-1] if before else None
    position = 0
    while position < len(data):
        try:
            record, position = _next(data, position, chain, last)
        except MalformedRecords as error:
            after = -1 if last is None else last.sequence
            following = _resume(data, position, chain, last)
            damage = Damage(after, data[position:following], str(error))
            if following is None:
                found.rest = None if _is_torn(data, position, error) else damage
                break
            found.damage.append(damage)
            position = following
            continue
        found.records.append(record)
        last = record
        found.end = offset + position
    return found


def _next(data: bytes, position: int, chain: uuid.UUID, last: Record | None) -> tuple[Record, int]:
    """Parse the record at *position*, whose sequence number may be any above that of *last*."""
    record, end = parse_record(data, position, chain, None)
    if last is not None and record.sequence <= last.sequence:
        raise MalformedRecords(f"record {record.sequence}: expected a record after {last.sequence}")
    if last is not None and record.sequence == last.sequence + 1 and record.previous != last.hash:
        raise MalformedRecords(f"record {record.sequence}: expected the previous hash {last.hash}")
    return record, end


def _resume(data: bytes, position: int, chain: uuid.UUID, last: Record | None) -> int | None:
    """Return where the next sound record after *position* begins; None if there is none."""
    for match in _RECORD.finditer(data, position + 1):
        try:
            _next(data, match.start(), chain, last)
        except MalformedRecords:
            continue
        return match.start()
    return None


def _is_torn(data: bytes, position: int, error: MalformedRecords) -> bool:
    """Return whether the bytes from *position* on are the beginning of one record, and nothing else."""
    line_end = data.find(b"\n", position)
    return isinstance(error, CutShort) and (line_end < 0 or b"\n" not in data[line_end + 1 :])
