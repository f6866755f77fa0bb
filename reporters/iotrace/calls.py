"""I/O calls, as traces of any kind give them."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

# Flags of an open, as in kernels/iotrace.c.
CREATED, TRUNCATED, DIRECT, APPENDING, FOR_READING, FOR_WRITING = 1, 2, 4, 8, 16, 32
MOVING = frozenset(("read", "write", "fread", "fwrite"))
STREAMED = frozenset(("fread", "fwrite"))


class BadTrace(Exception):
    """A file is no trace that can be read; the message says why, in one line."""


def file_bytes(path: Path) -> int:
    """Return the size of the file *path*. Raises BadTrace if it is none, such as a pipe, which blocks."""
    try:
        status = path.stat()
    except OSError as error:
        raise BadTrace(f"cannot read {path}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise BadTrace(f"cannot read {path}: it is no regular file")
    return status.st_size


class IoCall(NamedTuple):
    """A call on a file. Times are in nanoseconds.

    *size* is what was asked for, *result* what was moved (or the status); of an open, *size* is that of the
    file and *more* how many bytes of it were in the page cache (-1: not known); of a rename, *more* is the
    other file. Of other calls *more* is how many calls of the program it stands for.
    """

    began: int
    duration: int
    file: int
    offset: int
    size: int
    result: int
    more: int
    flags: int
    operation: str

    @property
    def ended(self) -> int:
        return self.began + self.duration


@dataclass
class CallStream:
    """The calls of one thread, oldest first; they can be read several times. *rank* is -1 outside of MPI."""

    began: int
    ended: int
    rank: int
    calls: Iterable[IoCall]
    files: frozenset[int] = frozenset()


@dataclass
class IoTrace:
    """The streams of a program, and the memory of its host."""

    source: str
    memory_bytes: int
    streams: Sequence[CallStream]
    warnings: list[str] = field(default_factory=list)
