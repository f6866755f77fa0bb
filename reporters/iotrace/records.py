"""The trace file: a line of JSON, then for each process what ``kernels/iotrace.c`` wrote."""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from probes.common.io_classes import OPERATIONS
from probes.common.io_counters import BadCounters, ProcessCounters, parse_counters, written_counters
from probes.common.signature import SOURCES
from reporters.iotrace.calls import MOVING, BadTrace, CallStream, IoCall, IoTrace

FORMAT = "gridcast-io-trace"
VERSION = 1
MAX_BYTES = 256 << 20  # four million calls
_CHUNK = struct.Struct("<Qq")
_RECORD = struct.Struct("<qqQqqqqII")
_CHUNK_HEADER = _RECORD_BYTES = 64
_LONGEST_LINE = 1 << 20


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
        try:
            with path.open("rb") as file:
                self.metadata, begin = self._read_first_line(file)
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise BadTrace(f"cannot read {path}: {error.strerror}") from None
        self.parts = self._parts(begin)

    def _read_first_line(self, file: BinaryIO) -> tuple[dict[str, Any], int]:
        size = os.fstat(file.fileno()).st_size
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

    def trace(self) -> IoTrace:
        """Return the calls. Raises BadTrace if some were not recorded, or a record is damaged."""
        calls = sum(part.counters.all_calls for part in self.parts)
        if self.lost:
            raise BadTrace(
                f"{self._path}: of {calls:,} calls {self.lost:,} are only counted: "
                "raise --limit-bytes or trace a shorter run"
            )
        streams = [stream for part in self.parts for stream in self._streams(part)]
        return IoTrace(self.metadata["source"], self.metadata["memory_bytes"], streams)

    def _streams(self, part: TracedProcess) -> Iterator[CallStream]:
        chunks: dict[int, list[tuple[int, int]]] = defaultdict(list)
        place = part.begin
        while place < part.end:
            size, thread = _CHUNK.unpack_from(self._data, place)
            if size == 0:
                break  # of a process that was killed before it wrote to the chunk
            if size % 4096 or size > part.end - place:
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


def merge(parts: Sequence[Path], target: Path, metadata: dict[str, Any]) -> None:
    """Write a trace file from the files of processes."""
    sizes = [part.stat().st_size for part in parts]
    first = {"format": FORMAT, "version": VERSION, **metadata, "processes": sizes}
    with target.open("wb") as file:
        file.write(json.dumps(first, separators=(",", ":")).encode() + b"\n")
        for part in parts:
            with part.open("rb") as source:
                while data := source.read(1 << 20):
                    file.write(data)


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
