"""The trace file: a line of JSON, then for each process what ``kernels/iotrace.c`` wrote."""

from __future__ import annotations

import json
import mmap
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from probes.common.io_classes import OPERATIONS
from probes.common.io_counters import (
    COUNTERS_BYTES,
    HEADER_BYTES,
    BadCounters,
    ProcessCounters,
    parse_counters,
    shortened,
    with_all_lost,
    written_counters,
)
from probes.common.signature import SOURCES
from reporters.iotrace.calls import MOVING, BadTrace, CallStream, IoCall, IoTrace, file_bytes

FORMAT = "gridcast-io-trace"
VERSION = 1
MAX_BYTES = 256 << 20  # four million calls
_CHUNK = struct.Struct("<Qq")
_RECORD = struct.Struct("<qqQqqqqII")
_CHUNK_HEADER = _RECORD_BYTES = 64
_LONGEST_LINE = 4 << 20  # its processes: 400,000 have no room in the file


@dataclass(frozen=True)
class TracedProcess:
    """A process of a trace file: its counters, and where its chunks begin and end."""

    counters: ProcessCounters
    begin: int
    end: int


class TraceFile:
    """A trace file that is open for reading."""

    def __init__(self, path: Path) -> None:
        """Open *path*. Raises BadTrace if it is no trace, damaged, newer or too large."""
        self._path = path
        size = file_bytes(path)
        try:
            with path.open("rb") as file:
                self.metadata, begin = self._read_first_line(file, size)
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise BadTrace(f"cannot read {path}: {error.strerror}") from None
        self.parts = self._parts(begin)

    def _read_first_line(self, file: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
        if size == 0:
            raise BadTrace(f"{self._path}: it is empty")
        line = file.readline(_LONGEST_LINE)
        try:
            metadata = json.loads(line)
            is_trace = metadata["format"] == FORMAT
        except (ValueError, KeyError, TypeError, RecursionError):
            is_trace = False
        if not is_trace:
            raise BadTrace(f"{self._path}: it is no trace of iotrace")
        version = metadata.get("version")
        if version != VERSION:
            newer = isinstance(version, int) and version > VERSION
            raise BadTrace(
                f"{self._path}: it has version {version!r:.40}, this gridcast reads {VERSION}"
                + (": update it" if newer else "")
            )
        if size > MAX_BYTES:
            raise BadTrace(f"{self._path}: {size:,} bytes, the limit is {MAX_BYTES:,}: trace a shorter run")
        if metadata.get("source") not in SOURCES or not isinstance(metadata.get("memory_bytes"), int):
            raise BadTrace(f"{self._path}: it is damaged: its source or memory_bytes cannot be read")
        return metadata, len(line)

    def _parts(self, begin: int) -> Sequence[TracedProcess]:
        parts = []
        try:
            for size in self.metadata["processes"]:
                counters = parse_counters(self._data[begin : begin + size][:4096])
                parts.append(TracedProcess(counters, begin + counters.header_bytes, begin + size))
                begin += size
        except (BadCounters, TypeError, ValueError, KeyError) as error:
            raise BadTrace(f"{self._path}: it is damaged: {error}") from None
        if begin != len(self._data):
            raise BadTrace(
                f"{self._path}: it is damaged: {begin:,} bytes expected, {len(self._data):,} found"
            )
        return parts

    @property
    def lost(self) -> int:
        """How many calls are only counted."""
        return sum(part.counters.lost for part in self.parts)

    @property
    def summary(self) -> str:
        """How many calls there are, and what to do if some are only counted."""
        calls = sum(part.counters.all_calls for part in self.parts)
        text = f"{calls:,} calls of {len(self.parts):,} processes"
        if not self.lost:
            return text
        advice = "record fewer by --area or --only" if self.metadata.get("cut") else "raise --limit-bytes"
        return f"{text}, {self.lost:,} of them only counted: {advice}, or trace a shorter run"

    def trace(self) -> IoTrace:
        """Return the calls. Raises BadTrace if some were not recorded, or a record is damaged."""
        if self.lost:
            raise BadTrace(f"{self._path}: {self.summary}")
        streams = [stream for part in self.parts for stream in self._streams(part)]
        return IoTrace(self.metadata["source"], self.metadata["memory_bytes"], streams)

    def _streams(self, part: TracedProcess) -> Iterator[CallStream]:
        chunks: dict[int, list[tuple[int, int]]] = defaultdict(list)
        place = part.begin
        while place < part.end:
            left = part.end - place
            size, thread = _CHUNK.unpack_from(self._data, place) if left >= _CHUNK_HEADER else (0, 0)
            if not _CHUNK_HEADER <= size <= left or size % _RECORD_BYTES:
                raise BadTrace(f"{self._path}: it is damaged at byte {place:,}")
            chunks[thread].append((place + _CHUNK_HEADER, place + size))
            place += size
        for ranges in chunks.values():
            calls = _Records(self._path, self._data, ranges)
            last = max((call.ended for call in calls), default=part.counters.began)
            yield CallStream(part.counters.began, part.counters.ended or last, part.counters.task, calls)


class _Records:
    """The calls of one thread."""

    def __init__(self, path: Path, data: mmap.mmap, ranges: Sequence[tuple[int, int]]) -> None:
        self._path, self._data, self._ranges = path, data, ranges

    def __iter__(self) -> Iterator[IoCall]:
        for begin, end in self._ranges:
            for values in _RECORD.iter_unpack(self._data[begin:end]):
                began, duration, file, offset, size, result, more, flags, operation = values
                if operation == 0:
                    break
                if operation >= len(OPERATIONS):
                    raise BadTrace(f"{self._path}: it is damaged: it has the operation {operation}")
                yield IoCall(began, duration, file, offset, size, result, more, flags, OPERATIONS[operation])


@dataclass(frozen=True)
class _ProcessFile:
    """The file of a process: its header, and where its records lie, by chunk: begin, end, thread."""

    path: Path
    header: bytes
    chunks: Sequence[tuple[int, int, int]]

    @property
    def chunk_bytes(self) -> int:
        return sum(_CHUNK_HEADER + end - begin for begin, end, _ in self.chunks)


def merge(parts: Sequence[Path], target: Path, metadata: dict[str, Any]) -> None:
    """Write a trace file from the files of processes.

    Processes whose records do not fit in MAX_BYTES have counters only: all their calls are lost.
    """
    opened = [part for path in parts if (part := _process_file(path))]
    room = MAX_BYTES - _LONGEST_LINE - COUNTERS_BYTES * len(opened)
    kept = []
    for part in opened:
        fits = part.chunk_bytes <= room
        kept.append(part if fits else _ProcessFile(part.path, with_all_lost(part.header), ()))
        room -= kept[-1].chunk_bytes
    sizes = [len(part.header) + part.chunk_bytes for part in kept]
    cut = kept != opened
    first = {"format": FORMAT, "version": VERSION, **metadata, "cut": cut, "processes": sizes}
    with target.open("wb") as file:
        file.write(json.dumps(first, separators=(",", ":")).encode() + b"\n")
        for part in kept:
            file.write(part.header)
            with part.path.open("rb") as source:
                for begin, end, thread in part.chunks:
                    source.seek(begin)
                    file.write(_CHUNK.pack(_CHUNK_HEADER + end - begin, thread).ljust(_CHUNK_HEADER, b"\0"))
                    file.write(source.read(end - begin))


def _process_file(path: Path) -> _ProcessFile | None:
    """Return what the file of a process has, without the room that its chunks have left.

    A process that was killed before its first call has no header, and counts for nothing.
    """
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
        try:
            parse_counters(header)
        except BadCounters:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _ProcessFile(path, shortened(header), [*_chunks(data)])


def _chunks(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Yield where the records of each chunk begin and end, and its thread."""
    place = HEADER_BYTES
    while place < len(data):
        size, thread = _CHUNK.unpack_from(data, place)
        if size == 0:
            break  # the process was killed before it wrote to the chunk
        begin, place = place + _CHUNK_HEADER, place + size
        used = len(data[begin:place].rstrip(b"\0"))  # the operation ends a record, and is not 0
        yield begin, begin + -(-used // _RECORD_BYTES) * _RECORD_BYTES, thread


def write_part(target: Path, process: int, calls: Sequence[IoCall], *, rank: int = -1) -> None:
    """Write the file of a process whose calls are known from elsewhere."""
    operations: dict[str, tuple[int, int, int]] = {}
    for call in calls:
        number, moved, spent = operations.get(call.operation, (0, 0, 0))
        size = max(call.result, 0) if call.operation in MOVING else 0
        operations[call.operation] = (number + 1, moved + size, spent + call.duration)
    header = written_counters((process, rank), calls[0].began, max(call.ended for call in calls), operations)
    records = b"".join(
        _RECORD.pack(*call[:7], call.flags, OPERATIONS.index(call.operation)) for call in calls
    )
    size = -(-(_CHUNK_HEADER + len(records)) // 4096) * 4096
    chunk = _CHUNK.pack(size, process).ljust(_CHUNK_HEADER, b"\0") + records
    target.write_bytes(header + chunk.ljust(size, b"\0"))
