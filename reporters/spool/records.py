"""Records of a hash chain, as they stand in segment files and travel to the server. Shared with the server.

A record is a line, its body and a newline: ``record SEQUENCE KIND LENGTH PREVIOUS HASH``. HASH is the SHA-256
of ``PREVIOUS SEQUENCE KIND LENGTH``, a newline and the body, so the hash of a record vouches for all records
before it. A part is a line ``chain UUID`` and consecutive records of that chain; a request is one or more
parts. Hashes are in lower-case hex.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from reporters.report import MAX_BYTES

START, REPORT, DROPPED = "start", "report", "dropped"
KINDS = (START, REPORT, DROPPED)
MOST_RECORDS = 500  # of a request
MOST_BYTES = 8 * 1024 * 1024  # of a request, uncompressed
MOST_LINE_BYTES = 200
_LARGEST = 2**63 - 1
_SHOWN_BYTES = 60
_UUID = rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CHAIN_LINE = re.compile(rb"chain (" + _UUID + rb")\n")
_RECORD_LINE = re.compile(
    rb"record (0|[1-9]\d{0,18}) ([a-z]{1,10}) ([1-9]\d{0,8}) ([0-9a-f]{64}) ([0-9a-f]{64})\n"
)


class MalformedRecords(ValueError):
    """Bytes break the format; the message says what was expected, where, and what was there."""


class CutShort(MalformedRecords):
    """The bytes end within a record, whose part so far is in order."""


@dataclass(frozen=True)
class Record:
    """A record: *previous* is the hash of the record before, of record 0 the ``first_hash`` of its chain."""

    sequence: int
    kind: str
    body: bytes
    previous: str
    hash: str


@dataclass(frozen=True)
class Part:
    """Consecutive records of one chain, linked by their hashes."""

    chain: uuid.UUID
    records: tuple[Record, ...]


def first_hash(chain: uuid.UUID) -> str:
    """Return the hash that stands for the record before record 0 of *chain*."""
    return hashlib.sha256(f"gridcast chain {chain}".encode()).hexdigest()


def record_hash(previous: str, sequence: int, kind: str, body: bytes) -> str:
    return hashlib.sha256(
        b"%s %d %s %d\n%s" % (previous.encode(), sequence, kind.encode(), len(body), body)
    ).hexdigest()


def next_record(chain: uuid.UUID, before: Record | None, kind: str, body: bytes) -> Record:
    """Return the record of *kind* that follows *before*; with None, record 0 of *chain*.

    Raises:
        ValueError: *body* is empty or larger than ``MAX_BYTES``, or *kind* has no place there.
    """
    sequence = 0 if before is None else before.sequence + 1
    if problem := _problem(sequence, kind, len(body)):
        raise ValueError(f"cannot make record {sequence} of chain {chain}: {problem}")
    previous = first_hash(chain) if before is None else before.hash
    return Record(sequence, kind, body, previous, record_hash(previous, sequence, kind, body))


def encode(record: Record) -> bytes:
    return b"record %d %s %d %s %s\n%s\n" % (
        record.sequence,
        record.kind.encode(),
        len(record.body),
        record.previous.encode(),
        record.hash.encode(),
        record.body,
    )


def encoded_bytes(record: Record) -> int:
    """Return a bound on the length of ``encode(record)``."""
    return MOST_LINE_BYTES + len(record.body) + 1


def chain_line(chain: uuid.UUID) -> bytes:
    return b"chain %s\n" % str(chain).encode()


def encode_parts(parts: Iterable[Part]) -> bytes:
    """Return the body of a request with *parts*."""
    return b"".join(
        piece
        for part in parts
        for piece in (chain_line(part.chain), *(encode(record) for record in part.records))
    )


def parse_parts(data: bytes, *, most_records: int = MOST_RECORDS, most_bytes: int = MOST_BYTES) -> list[Part]:
    """Parse the body of a request strictly; ``parse_parts(encode_parts(parts)) == parts``.

    Raises:
        MalformedRecords: *data* break the format, have more than *most_records* or *most_bytes*, or name a
            chain's record twice; the message names the offset.
    """
    if len(data) > most_bytes:
        raise MalformedRecords(f"expected at most {most_bytes} bytes, got {len(data)}")
    parts: list[Part] = []
    seen: set[tuple[uuid.UUID, int]] = set()
    position = 0
    while position < len(data) or not parts:
        chain, position = parse_chain_line(data, position)
        records: list[Record] = []
        while not records or data.startswith(b"record ", position):
            start = position
            record, position = parse_record(data, start, chain, records[-1] if records else None)
            if (chain, record.sequence) in seen:
                raise MalformedRecords(
                    f"byte {start}: record {record.sequence} of chain {chain} is there twice"
                )
            seen.add((chain, record.sequence))
            if len(seen) > most_records:
                raise MalformedRecords(f"byte {start}: expected at most {most_records} records")
            records.append(record)
        parts.append(Part(chain, tuple(records)))
    return parts


def parse_chain_line(data: bytes, position: int) -> tuple[uuid.UUID, int]:
    """Parse the line ``chain UUID`` at *position*; return the chain and the position after the line.

    Raises:
        MalformedRecords: there is no such line.
    """
    match = _CHAIN_LINE.match(data, position)
    if match is None:
        raise MalformedRecords(f"byte {position}: expected a line 'chain UUID', got {_shown(data, position)}")
    return uuid.UUID(match.group(1).decode()), match.end()


def parse_record(data: bytes, position: int, chain: uuid.UUID, before: Record | None) -> tuple[Record, int]:
    """Parse the record of *chain* at *position* of *data*; return it and the position after it.

    The record must follow *before*, except where *before* is None.

    Raises:
        CutShort: *data* end within the record.
        MalformedRecords: there is no such record, or its hash does not fit.
    """
    where = f"byte {position}, chain {chain}"
    match = _RECORD_LINE.match(data, position)
    if match is None:
        rest = data[position : position + MOST_LINE_BYTES]
        is_cut = b"\n" not in rest and len(rest) < MOST_LINE_BYTES
        error = CutShort if is_cut else MalformedRecords
        line = "record SEQUENCE KIND LENGTH PREVIOUS HASH"
        raise error(f"{where}: expected a line {line!r}, got {_shown(data, position)}")
    sequence, kind, length = int(match.group(1)), match.group(2).decode(), int(match.group(3))
    previous, hash_ = match.group(4).decode(), match.group(5).decode()
    problem = _problem(sequence, kind, length) or _broken_link(chain, before, sequence, previous)
    if problem:
        raise MalformedRecords(f"{where}, record {sequence}: {problem}")
    end = match.end() + length
    if end >= len(data):
        present = len(data) - match.end()
        raise CutShort(f"{where}, record {sequence}: expected {length} bytes and a newline, got {present}")
    if data[end : end + 1] != b"\n":
        raise MalformedRecords(
            f"{where}, record {sequence}: expected a newline after {length} bytes, got {_shown(data, end)}"
        )
    record = Record(sequence, kind, data[match.end() : end], previous, hash_)
    actual = record_hash(previous, sequence, kind, record.body)
    if actual != hash_:
        raise MalformedRecords(
            f"{where}, record {sequence}: expected a record with the hash {hash_}, got one with {actual}"
        )
    return record, end + 1


def _problem(sequence: int, kind: str, length: int) -> str:
    """Return why a record with these values cannot be; empty if it can."""
    if sequence > _LARGEST:
        return f"expected a sequence number of at most {_LARGEST}"
    if kind not in KINDS:
        return f"expected the kind {', '.join(KINDS)}, got {kind!r}"
    if (sequence == 0) != (kind == START):
        return f"expected record 0, and no other, to be of the kind {START}, got {kind!r}"
    if not 0 < length <= MAX_BYTES:
        return f"expected a body of 1 to {MAX_BYTES} bytes, got {length}"
    return ""


def _broken_link(chain: uuid.UUID, before: Record | None, sequence: int, previous: str) -> str:
    """Return why the record does not follow *before*; empty if it does."""
    if before is not None and sequence != before.sequence + 1:
        return f"expected record {before.sequence + 1}"
    expected = first_hash(chain) if sequence == 0 else before.hash if before is not None else previous
    return "" if previous == expected else f"expected the previous hash {expected}, got {previous}"


def _shown(data: bytes, position: int) -> str:
    return repr(data[position : position + _SHOWN_BYTES]) if position < len(data) else "the end"
