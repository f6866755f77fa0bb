"""The logs of a chain that say which records need no delivery any more: delivered, or reported as dropped.

A log is a text file in the chain's directory, appended to by one process; each process that delivers has its
own, so that no two processes write one file. A line is ``KIND FIRST LAST HASH CHECKSUM``. A line that is torn
or damaged is ignored: its records are delivered again, which is harmless.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path

from reporters.spool.files import read_from, write_at, write_whole
from reporters.spool.ranges import Ranges

DELIVERED, DROPPED = "delivered", "dropped"
SUFFIX = ".receipts"
_LINE = re.compile(rb"((delivered|dropped) (\d{1,19}) (\d{1,19}) ([0-9a-f]{64}|-)) ([0-9a-f]{8})")
_COMPACT_BYTES = 64 * 1024


class ReceiptLogs:
    """All logs of the chain in *directory*. Each instance writes a log of its own.

    Methods raise OSError, except ``add``: a line that cannot be written, for example on a full disk, is kept
    in memory and written later.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.done = Ranges()
        self.dropped = Ranges()
        self._own_name = uuid.uuid4().hex + SUFFIX
        self._own_bytes = 0
        self._unwritten = b""
        self._read: dict[str, tuple[int, int]] = {}  # name of another log -> inode, bytes read

    def refresh(self, names: Iterable[str]) -> None:
        """Read what other processes have added to the logs among *names*."""
        for name in names:
            if name.endswith(SUFFIX) and name != self._own_name:
                with contextlib.suppress(FileNotFoundError):  # compacted or retired
                    self._read_on(name)

    def add(self, kind: str, first: int, last: int, hash_: str) -> None:
        """Record that the records from *first* to *last* are *kind*."""
        self._apply(kind, first, last)
        self._unwritten += _line(kind, first, last, hash_)
        with contextlib.suppress(OSError):
            self._append_unwritten()

    def compact(self, least: int, *, is_durable: bool, is_forced: bool) -> None:
        """Rewrite the own log without what concerns only records before *least*, if it is long.

        With *is_forced*, always: the log then says everything that is known.
        """
        self.done.discard_below(least)
        if is_forced or self._own_bytes > _COMPACT_BYTES:
            lines = [_line(DELIVERED, first, last, "-") for first, last in self.done]
            lines += [_line(DROPPED, first, last, "-") for first, last in self.dropped]
            data = b"".join(lines)
            write_whole(self.directory / self._own_name, data, is_durable=is_durable)
            self._own_bytes, self._unwritten = len(data), b""

    def _append_unwritten(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self.directory / self._own_name, flags, 0o600)
        try:
            write_at(descriptor, self._own_bytes, self._unwritten)  # overwrites what an error has left
        finally:
            os.close(descriptor)
        self._own_bytes += len(self._unwritten)
        self._unwritten = b""

    def _read_on(self, name: str) -> None:
        path = self.directory / name
        status = path.stat()
        inode, offset = self._read.get(name, (status.st_ino, 0))
        if inode != status.st_ino or status.st_size < offset:
            offset = 0
        if status.st_size > offset:
            data = read_from(path, offset)
            complete = data.rfind(b"\n") + 1
            for line in data[:complete].splitlines():
                self._parse(line)
            offset += complete
        self._read[name] = (status.st_ino, offset)

    def _parse(self, line: bytes) -> None:
        match = _LINE.fullmatch(line)
        if match and match.group(6) == _checksum(match.group(1)):
            first, last = int(match.group(3)), int(match.group(4))
            if first <= last:
                self._apply(match.group(2).decode(), first, last)

    def _apply(self, kind: str, first: int, last: int) -> None:
        self.done.add(first, last)
        if kind == DROPPED:
            self.dropped.add(first, last)


def _line(kind: str, first: int, last: int, hash_: str) -> bytes:
    text = f"{kind} {first} {last} {hash_}".encode()
    return text + b" " + _checksum(text) + b"\n"


def _checksum(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)
