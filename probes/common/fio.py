"""Run fio (Jens Axboe, fio.readthedocs.io): its file names and its output."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

# The key of fio's JSON output that holds the result of each operation.
FIO_OPERATIONS = {"write": "write", "read": "read", "randread": "read", "randwrite": "write"}
NO_DIRECT_IO = 22  # EINVAL, from open() with O_DIRECT


@dataclass(frozen=True)
class OperationResult:
    """The number of I/O operations of one measurement, the bytes that they moved, and their duration."""

    operations: int
    size_bytes: int
    seconds: float


class FioFailed(ValueError):
    """fio reported an error or printed unreadable output; *errno* is 0 if fio reported none."""

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


def escaped(path: str) -> str:
    """Return *path* as fio reads it: an unescaped colon separates file names."""
    return path.replace(":", "\\:")


def parse_fio(text: str, operation: str) -> OperationResult:
    """Return the result of *operation* in fio's output: messages, then JSON with one job.

    Raises:
        FioFailed: fio reported an error, did nothing, or printed no JSON.
    """
    messages, brace, rest = text.partition("{")
    try:
        job: dict[str, Any] = json.loads(brace + rest)["jobs"][0]
        counters = job[FIO_OPERATIONS[operation]]
        result = OperationResult(
            int(counters["total_ios"]), int(counters["io_bytes"]), float(counters["runtime"]) / 1000
        )
        errno = int(job["error"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise FioFailed(f"unreadable output: {text[-200:]!r}") from None
    if errno:
        raise FioFailed(os.strerror(errno) + (f" ({messages.strip()})" if messages.strip() else ""), errno)
    if result.operations == 0:
        raise FioFailed("no operation was performed, and no error reported")
    return result
