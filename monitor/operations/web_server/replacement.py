"""When a web process that has grown is replaced: memory that a large request needed is rarely given back.

A process ends between requests: it answers those that it has, while the others accept the new ones, and
gunicorn starts another in its place. Two processes never end at the same time.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO

MEBIBYTE = 1024 * 1024
GROWTH_BYTES = 512 * MEBIBYTE  # permitted by default, beyond the size after the start
LEAST_GROWTH_BYTES = 64 * MEBIBYTE  # permitted in any case: a smaller limit would replace processes for ever
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Return the resident memory of this process, without what it shares with others."""
    _, resident, shared, *_ = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return (int(resident) - int(shared)) * _PAGE_BYTES


@cache
def ending_lock() -> IO[bytes]:
    """Return the file that a process locks while it ends; its children share the file of a process."""
    return tempfile.TemporaryFile()  # open as long as the process


class Replacement:
    """Decides whether this process is to end. *lock* is a file that all processes of the parent have.

    *most_bytes* is the limit, None for the default; a process ends when it has been larger for
    *grown_seconds*, because a request may need much for a moment.
    """

    def __init__(
        self,
        most_bytes: int | None,
        grown_seconds: float,
        lock: IO[bytes],
        resident: Callable[[], int] = resident_bytes,
    ) -> None:
        self._configured, self._grown_seconds, self._resident = most_bytes, grown_seconds, resident
        self._most_bytes: int | None = None  # known after the start
        self._grown_since: float | None = None
        self._lock = lock

    def reason(self, now: float) -> str:
        """Return why this process ends now; empty if it goes on. *now*: seconds of a steady clock."""
        resident = self._resident()
        if self._most_bytes is None:
            default = resident + GROWTH_BYTES
            self._most_bytes = max(self._configured or default, resident + LEAST_GROWTH_BYTES)
        if resident <= self._most_bytes:
            self._grown_since = None
            return ""
        if self._grown_since is None:
            self._grown_since = now
        if now - self._grown_since < self._grown_seconds or not self._is_alone():
            return ""
        return f"{resident // MEBIBYTE} MiB of memory, {self._most_bytes // MEBIBYTE} MiB permitted"

    def _is_alone(self) -> bool:
        """Return whether no other process of the parent is ending; it stays so until this one has ended."""
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
