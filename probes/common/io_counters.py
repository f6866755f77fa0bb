"""The counters of a traced process: the header of its file, as ``kernels/iotrace.c`` writes it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from probes.common.io_classes import CLASS_OF, OPERATIONS, TaskTimes

VERSION = 1
HEADER_BYTES = 4096
_MAGIC = b"GRIDIOT\0"
_HEAD = struct.Struct("<8sIIIIqqqqqqqQ")
_COUNTER = struct.Struct("<QQQ")
COUNTERS_BYTES = _HEAD.size + _COUNTER.size * len(OPERATIONS)  # of the header: what is read


class BadCounters(ValueError):
    """Bytes are no header of a traced process."""


@dataclass(frozen=True)
class ProcessCounters:
    """The calls, bytes and nanoseconds of each operation of a process. *ended* is 0 if it was killed."""

    header_bytes: int
    process: int
    task: int
    began: int
    ended: int
    lost: int
    operations: dict[str, tuple[int, int, int]]

    @property
    def all_calls(self) -> int:
        return sum(calls for calls, _, _ in self.operations.values())


def parse_counters(data: bytes) -> ProcessCounters:
    """Return the counters in *data*, the first bytes of the file of a process.

    Raises:
        BadCounters: *data* is no header, or of another version.
    """
    if len(data) < COUNTERS_BYTES:
        raise BadCounters("a process has no header")
    magic, version, header_bytes, _, operations, process, _, task, _, began, ended, _, lost = (
        _HEAD.unpack_from(data)
    )
    if magic != _MAGIC:
        raise BadCounters("the header of a process is damaged")
    if version != VERSION or operations != len(OPERATIONS):
        raise BadCounters(f"a process has version {version}, this gridcast reads {VERSION}")
    counters = {
        name: _COUNTER.unpack_from(data, _HEAD.size + number * _COUNTER.size)
        for number, name in enumerate(OPERATIONS)
        if number
    }
    return ProcessCounters(header_bytes, process, task, began, ended, lost, counters)


def written_counters(
    process_and_task: tuple[int, int], began: int, ended: int, operations: Mapping[str, tuple[int, int, int]]
) -> bytes:
    """Return a header of 4,096 bytes for a process that was traced in another way."""
    process, task = process_and_task
    head = _HEAD.pack(
        _MAGIC, VERSION, HEADER_BYTES, 64, len(OPERATIONS), process, 0, task, -1, began, ended, 0, 0
    )
    counters = [_COUNTER.pack(*operations.get(name, (0, 0, 0))) for name in OPERATIONS]
    return b"".join([head, *counters]).ljust(HEADER_BYTES, b"\0")


def shortened(header: bytes) -> bytes:
    """Return *header* without the bytes that it leaves unused."""
    fields = list(_HEAD.unpack_from(header))
    fields[2] = COUNTERS_BYTES
    return _HEAD.pack(*fields) + header[_HEAD.size : COUNTERS_BYTES]


def with_all_lost(header: bytes) -> bytes:
    """Return *header* as that of a process that has no records, only counters."""
    fields = _HEAD.unpack_from(header)
    lost = parse_counters(header).all_calls
    return _HEAD.pack(*fields[:-1], lost) + header[_HEAD.size :]


def task_times(processes: Iterable[ProcessCounters]) -> TaskTimes:
    """Return the sums over the *processes* of one task. Thinking is what the calls leave of their lives."""
    calls, moved, nanoseconds, lives = dict[str, int](), dict[str, int](), dict[str, int](), 0
    for process in processes:
        lives += max(process.ended - process.began, 0)
        for name, (number, size, spent) in process.operations.items():
            group = CLASS_OF[name]
            calls[group] = calls.get(group, 0) + number
            moved[group] = moved.get(group, 0) + size
            nanoseconds[group] = nanoseconds.get(group, 0) + spent
    seconds = {name: spent * 1e-9 for name, spent in nanoseconds.items()}
    seconds["think"] = max(lives - sum(nanoseconds.values()), 0) * 1e-9
    return TaskTimes(calls, moved, seconds)
