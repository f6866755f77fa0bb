"""Read Darshan logs by the Python package ``darshan``: the calls that DXT recorded, otherwise counters.

Counters say how many calls a rank made on a file, how many bytes they moved, how long they took and whether
they were sequential. A signature made of them is labelled so.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes.common.signature import MAX_TASKS
from reporters.iotrace.calls import CREATED, FOR_READING, FOR_WRITING, BadTrace, IoCall, IoTrace, file_bytes
from reporters.iotrace.records import TraceFile, merge, write_part
from reporters.path_chain import unsafe_reason

MAX_BYTES = 256 << 20
_MOST_CALLS = 2_000_000
_LONGEST_SECONDS = 1e9
_LARGEST = 1 << 62
_REFUSED = 3
_COMPLAINT = "Error: "  # as a line of the C library begins
_WARNINGS = {
    "darshan-dxt": "DXT has reads and writes: opens and fsyncs are not played",
    "darshan-counters": "the log has counters only: the order of calls and their offsets are not known",
}
_SCATTER = 7919  # a prime: places in no order


def is_log(path: Path) -> bool:
    """Return whether the file has the name of a Darshan log."""
    return path.suffix == ".darshan"


def read(path: Path) -> IoTrace:
    """Return the calls in the log at *path*.

    A process of its own reads a copy: given a damaged log, the C library may crash, or remove the file.

    Raises:
        BadTrace: the log or the package cannot be read, or the log has no file I/O or too many ranks.
    """
    # Python imports modules from the directory that it runs in.
    if reason := unsafe_reason(Path(tempfile.gettempdir())):
        raise BadTrace(f"cannot copy {path} to the directory of temporary files: {reason}")
    with tempfile.TemporaryDirectory(prefix="gridcast-darshan-") as directory:
        copy, trace = Path(directory, "log.darshan"), Path(directory, "trace")
        size = file_bytes(path)
        if not 0 < size <= MAX_BYTES:
            raise BadTrace(f"{path}: {size:,} bytes, expected 1 to {MAX_BYTES:,}")
        try:
            shutil.copyfile(path, copy)
        except OSError as error:
            raise BadTrace(f"cannot read {path}: {error.strerror}") from None
        reader = subprocess.run(
            [sys.executable, "-m", __name__, str(copy), str(trace)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        errors = [line.strip()[:200] for line in reader.stderr.splitlines() if line.strip()]
        complaints = [line.removeprefix(_COMPLAINT) for line in errors if line.startswith(_COMPLAINT)]
        if complaints:
            # The first ones name the cause, such as two lines about the version; the others follow from it.
            causes = ", ".join(complaint.rstrip(".") for complaint in complaints[:2])
            raise BadTrace(f"{path}: darshan cannot read it: {causes}")
        if reader.returncode == _REFUSED:
            raise BadTrace(f"{path}: {errors[-1]}")
        if reader.returncode:
            raise BadTrace(f"{path}: it is damaged: {errors[-1] if errors else 'a crash'}")
        read = TraceFile(trace).trace()
        return replace(read, warnings=[_WARNINGS[read.source]])


def main(log: str, target: str) -> int:
    """Write the calls of *log* to the trace file *target*; return the exit status. A refusal is a line."""
    try:
        source, calls = _calls(Path(log))
    except BadTrace as error:
        sys.stderr.write(f"{error}\n")
        return _REFUSED
    parts = []
    for rank, mine in sorted(calls.items()):
        parts.append(Path(f"{target}.{rank}"))
        write_part(parts[-1], rank, sorted(mine, key=lambda call: call.began), rank=rank)
    merge(parts, Path(target), {"memory_bytes": 0, "source": source})
    return 0


def _calls(log: Path) -> tuple[str, Mapping[int, list[IoCall]]]:
    """Return the source of the calls in *log*, and the calls of each rank."""
    try:
        darshan = importlib.import_module("darshan")
    except ImportError:
        raise BadTrace("the Python package darshan is not installed (extra: darshan)") from None
    try:
        report = darshan.DarshanReport(str(log), read_all=False)
        ranks = int(report.metadata["job"]["nprocs"])
        if ranks > MAX_TASKS:
            raise BadTrace(f"{ranks:,} ranks, a signature has at most {MAX_TASKS:,} tasks")
        if "DXT_POSIX" in report.modules:
            report.mod_read_all_dxt_records("DXT_POSIX", dtype="dict")
            return "darshan-dxt", _dxt_calls(report.records["DXT_POSIX"], ranks)
        return "darshan-counters", _counted_calls(_counters(report), ranks)
    except (
        RuntimeError,
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        OSError,
    ) as error:
        raise BadTrace(f"darshan cannot read it: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _dxt_calls(records: Sequence[Mapping[str, Any]], ranks: int) -> dict[int, list[IoCall]]:
    kinds = ("read", "write")
    _check_number(sum(len(record[f"{kind}_segments"]) for record in records for kind in kinds))
    calls: dict[int, list[IoCall]] = defaultdict(list)
    for record in records:
        moved = [
            _call(
                kind,
                int(record["id"]),
                (segment["start_time"], segment["end_time"] - segment["start_time"]),
                (int(segment["offset"]), int(segment["length"])),
            )
            for kind in kinds
            for segment in record[f"{kind}_segments"]
        ]
        if moved:
            calls[_rank(record, 0, ranks)] += [_open(moved), *moved]
    return calls


def _check_number(calls: int) -> None:
    if not 0 <= calls <= _MOST_CALLS:
        raise BadTrace(f"{calls:,} calls, the limit is {_MOST_CALLS:,}")


def _rank(record: Mapping[str, Any], lowest: int, ranks: int) -> int:
    rank = int(record["rank"])
    if not lowest <= rank < ranks:
        raise BadTrace(f"it is damaged: a record of rank {rank} in a log of {ranks:,} ranks")
    return rank


def _call(operation: str, file: int, times: tuple[float, float], place: tuple[int, int]) -> IoCall:
    """Return a call. *times* are its begin and its seconds, *place* is its offset and its bytes."""
    begin, seconds = times
    offset, size = place
    if not (abs(begin) <= _LONGEST_SECONDS and seconds <= _LONGEST_SECONDS):
        raise BadTrace(f"it is damaged: a {operation} of {seconds:g} s at {begin:g} s")
    if not (0 <= offset <= _LARGEST and 0 <= size <= _LARGEST):
        raise BadTrace(f"it is damaged: a {operation} of {size:,} bytes at {offset:,}")
    duration = max(round(seconds * 1e9), 0)
    return IoCall(round(begin * 1e9), duration, file, offset, size, size, 1, 0, operation)


def _open(moved: Sequence[IoCall]) -> IoCall:
    """Return the open before the first of *moved*; the file is there if it is read before it is written."""
    first = min(moved, key=lambda call: call.began)
    reads = [call.offset + call.size for call in moved if call.operation == "read"]
    is_there = first.operation == "read"
    flags = (FOR_READING if reads else 0) | (FOR_WRITING if len(reads) < len(moved) else 0)
    size = max(reads) if is_there else 0
    return IoCall(first.began, 0, first.file, 0, size, 0, -1, flags | (0 if is_there else CREATED), "open")


def _counters(report: Any) -> list[dict[str, Any]]:
    """Return the counters of each record, named without their module."""
    module = next((name for name in ("POSIX", "STDIO") if name in report.modules), "")
    if not module:
        raise BadTrace("it has no module POSIX or STDIO")
    report.mod_read_all_records(module)
    frames = report.records[module].to_df()
    whole, fractions = frames["counters"].to_dict("records"), frames["fcounters"].to_dict("records")
    return [
        {name.removeprefix(f"{module}_"): value for name, value in {**counters, **times}.items()}
        for counters, times in zip(whole, fractions)
    ]


def _counted_calls(records: Sequence[Mapping[str, Any]], ranks: int) -> dict[int, list[IoCall]]:
    calls: dict[int, list[IoCall]] = defaultdict(list)
    counts = [int(record[f"{operation}S"]) for record in records for operation in ("READ", "WRITE")]
    for number in (min(counts, default=0), sum(counts)):
        _check_number(number)
    for record in records:
        own_rank = _rank(record, -1, ranks)
        shared = own_rank < 0
        for rank in range(ranks) if shared else [own_rank]:
            moved = [
                call
                for operation, bytes_moved in (("READ", "BYTES_READ"), ("WRITE", "BYTES_WRITTEN"))
                for call in _of_one_kind(record, operation, bytes_moved, rank, ranks if shared else 1)
            ]
            if moved:
                calls[rank] += [_open(moved), *moved]
    return calls


def _of_one_kind(
    record: Mapping[str, Any], operation: str, bytes_moved: str, rank: int, ranks: int
) -> Iterator[IoCall]:
    """Yield the reads or writes of *rank*, evenly from their first to their last, in its part of the file."""
    all_calls = int(record[f"{operation}S"])
    count = all_calls // ranks + (rank % ranks < all_calls % ranks)
    if count == 0:
        return
    size = int(record[bytes_moved]) // all_calls
    begin = float(record[f"F_{operation}_START_TIMESTAMP"])
    spent = float(record[f"F_{operation}_TIME"]) / all_calls
    pause = max(float(record[f"F_{operation}_END_TIMESTAMP"]) - begin, spent * count) / count
    is_sequential = 2 * int(record.get(f"SEQ_{operation}S", all_calls)) >= all_calls
    first = (rank % ranks) * count if ranks > 1 else 0
    for number in range(count):
        place = first + (number if is_sequential else number * _SCATTER % count)
        times, offset = (begin + number * pause, spent), place * size
        yield _call(operation.lower(), int(record["id"]), times, (offset, size))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
