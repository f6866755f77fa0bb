"""The writer of one chain: appends records to segment files, one process, any number of threads."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Callable

from reporters.spool.files import sync, write_at, write_whole
from reporters.spool.owner import CLOSED, HEARTBEAT, OWNER, Process
from reporters.spool.records import MOST_LINE_BYTES, START, Record, encode, next_record
from reporters.spool.segment import file_name, header
from reporters.trees import remove_tree

_ROTATE_SECONDS = 3600.0  # a segment is dropped as a whole, so it must not span weeks


class ChainEnded(Exception):
    """The chain takes no more records, and a new chain has to be started.

    A record that was being appended is not stored, or is stored but may have been removed.
    """


class ChainWriter:
    """Appends to *chain*, a new directory in *parent*, whose record 0 has the body *start*.

    With *is_durable* a record survives a power failure once ``append`` has returned; threads that append at
    the same time share one ``fsync``. Without it, a record survives the death of any process.

    An OSError of ``append`` means that the record is not stored; the next call may succeed. After an error
    that leaves the state of the file unknown the next call raises ChainEnded: a sequence number is never used
    for two records, as another process may have delivered the first.
    """

    def __init__(
        self,
        parent: Path,
        start: bytes,
        *,
        owner: Process,
        now: Callable[[], datetime],
        segment_bytes: int,
        is_durable: bool,
    ) -> None:
        self.chain = uuid.uuid4()
        self.directory = parent / str(self.chain)
        self._now = now
        self._segment_bytes = segment_bytes
        self._is_durable = is_durable
        self._lock = threading.Lock()  # of the fields below; never held during an fsync of records
        self._sync_lock = threading.Lock()  # taken before _lock
        self._last = next_record(self.chain, None, START, start)
        self._synced = self._last.sequence
        self._rotated: list[int] = []  # descriptors of segments that are complete, but not on disk yet
        self._descriptor = -1  # of the current segment
        self._begin = self._end = 0  # offsets behind its header and its last record
        self._is_ended = False
        self._is_writing = False
        self._beats = 0
        self._beat_at = 0.0
        self._create(parent, owner)

    def append(self, kind: str, body: bytes) -> Record:
        """Append a record and return it.

        Raises:
            OSError: the record could not be stored, for example on a full disk.
            ChainEnded: the chain takes no more records.
            ValueError: *body* has a newline, or is empty or too large.
        """
        if b"\n" in body:
            raise ValueError("cannot spool a body with a newline: expected compact JSON")
        with self._lock:
            if self._is_ended or self._is_writing:
                raise ChainEnded
            record = next_record(self.chain, self._last, kind, body)
            data = encode(record)
            if self._is_full(len(body)):
                self._rotate(record.sequence)
            self._write(data)
            self._last = record
            self._is_writing = False
        if self._is_durable:
            self._sync_to(record.sequence)
        self.require_in_place()
        return record

    def require_in_place(self) -> None:
        """Raise ChainEnded if another process has retired the chain."""
        if not self.directory.exists():
            self._is_ended = True
            raise ChainEnded

    def needs_rotation(self, length: int) -> bool:
        """Return whether a record with a body of *length* bytes would begin a new segment."""
        with self._lock:
            return self._is_full(length)

    def beat(self, every_seconds: float) -> None:
        """Change the heartbeat file, unless it changed in the last *every_seconds*. Ignores errors."""
        if time.monotonic() - self._beat_at >= every_seconds or not self._beats:
            self._beat_at = time.monotonic()
            self._beats += 1
            with contextlib.suppress(OSError):
                (self.directory / HEARTBEAT).write_text(str(self._beats))

    def close(self) -> None:
        """End the chain: its writer counts as dead from now on."""
        with self._sync_lock, self._lock:
            self._is_ended = True
            for descriptor in [*self._rotated, self._descriptor]:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            self._rotated, self._descriptor = [], -1
            with contextlib.suppress(OSError):
                write_whole(self.directory / OWNER, CLOSED.encode(), is_durable=False)

    def forget(self) -> None:
        """Close the descriptors in a child process after a fork; the chain remains the parent's."""
        for descriptor in [*self._rotated, self._descriptor]:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _create(self, parent: Path, owner: Process) -> None:
        """Make the directory under another name first, so every chain has an owner and a record 0."""
        new = parent / f".{self.chain}.new"
        new.mkdir(mode=0o700)
        try:
            write_whole(new / OWNER, owner.to_text().encode(), is_durable=self._is_durable)
            self._open(new, 0)
            try:
                self._write(encode(self._last))
                self._is_writing = False
                if self._is_durable:
                    os.fsync(self._descriptor)
                    sync(new)
                new.rename(self.directory)
                if self._is_durable:
                    sync(parent)
            except BaseException:
                os.close(self._descriptor)
                raise
        except BaseException:  # also of a signal handler: this process lives on, and none else would tidy
            remove_tree(new)
            raise

    def _open(self, directory: Path, first: int) -> None:
        """Make the segment that begins with record *first* the current one."""
        path = directory / file_name(first)
        line = header(self.chain, self._now())
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_at(descriptor, 0, line)
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
        self._descriptor, self._begin, self._end = descriptor, len(line), len(line)
        self._opened_at = time.monotonic()

    def _is_full(self, length: int) -> bool:
        is_old = time.monotonic() - self._opened_at > _ROTATE_SECONDS
        end = self._end + MOST_LINE_BYTES + length
        return self._end > self._begin and (is_old or end > self._segment_bytes)

    def _rotate(self, first: int) -> None:
        complete = self._descriptor
        try:
            self._open(self.directory, first)
        except (FileExistsError, FileNotFoundError):  # left by an error, or the chain was retired
            self._is_ended = True
            raise ChainEnded from None
        if self._is_durable:
            self._rotated.append(complete)
        else:
            os.close(complete)

    def _write(self, data: bytes) -> None:
        """Write *data* at the end; the caller resets ``_is_writing`` when it has recorded their meaning.

        While it is set, an exception of a signal handler may have left a whole record behind.
        """
        self._is_writing = True
        try:
            write_at(self._descriptor, self._end, data)
        except OSError:
            os.ftruncate(self._descriptor, self._end)  # an error here ends the chain
            self._is_writing = False
            raise
        self._end += len(data)

    def _sync_to(self, sequence: int) -> None:
        """Flush the records up to *sequence* to disk, and those of all threads that wait for it."""
        with self._sync_lock:
            if self._synced >= sequence:
                return
            if self._is_ended:
                raise ChainEnded
            with self._lock:
                target, rotated, current = self._last.sequence, self._rotated, self._descriptor
                self._rotated = []
            try:
                for descriptor in [*rotated, current]:
                    os.fsync(descriptor)
                if rotated:
                    sync(self.directory)
            except OSError:
                self._is_ended = True  # the kernel may have dropped any of the records
                raise
            finally:
                for descriptor in rotated:
                    os.close(descriptor)
            self._synced = target
