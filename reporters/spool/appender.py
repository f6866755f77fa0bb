"""Appends the records of this process, to one chain after another where a chain has to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from reporters.spool.chains import ChainHead
from reporters.spool.files import SpoolError, spool_errors
from reporters.spool.notes import StartNote
from reporters.spool.owner import Process
from reporters.spool.records import Record
from reporters.spool.writer import ChainEnded, ChainWriter

_ATTEMPTS = 3
_BEAT_SECONDS = 60.0


class Appender:
    """The writing side of the spool of *reporter* in *directory*.

    *before_segment* is called before a segment begins, without locks: it may append records. *newest* returns
    the newest chain that is known.
    """

    def __init__(
        self,
        directory: Path,
        reporter: str,
        owner: Process,
        *,
        now: Callable[[], datetime],
        segment_bytes: int,
        is_durable: bool,
        before_segment: Callable[[], None],
        newest: Callable[[], ChainHead | None],
    ) -> None:
        self._directory, self._reporter, self._owner = directory, reporter, owner
        self._now, self._segment_bytes, self._is_durable = now, segment_bytes, is_durable
        self._before_segment, self._newest = before_segment, newest
        self._writer: ChainWriter | None = None
        self._lock = threading.Lock()

    def append(self, kind: str, body: bytes) -> Record:
        """Append a record and return it.

        Raises:
            SpoolError: *body* could not be stored.
            ValueError: *body* is no body of a record.
        """
        writer = self._writer
        if writer is None or writer.needs_rotation(len(body)):
            self._before_segment()
        action = f"cannot append to the spool {self._directory}"
        with spool_errors(action):
            for _ in range(_ATTEMPTS):
                writer = self._current()
                try:
                    return writer.append(kind, body)
                except ChainEnded:
                    self._end(writer)
        raise SpoolError(
            f"{action}: three new chains in a row were removed; is another program tidying there?"
        )

    def beat(self) -> None:
        """Show other hosts that this process lives."""
        if self._writer is not None:
            self._writer.beat(_BEAT_SECONDS)

    def close(self) -> None:
        """End the chain. A later ``append`` starts another."""
        if self._writer is not None:
            self._end(self._writer)

    def forget(self) -> None:
        """Leave the chain to the parent process, after a fork."""
        if self._writer is not None:
            self._writer.forget()

    def _current(self) -> ChainWriter:
        writer = self._writer
        if writer is not None:
            return writer
        before = self._newest()  # takes the lock of the spool, which comes before ours
        with self._lock:
            if self._writer is None:
                self._writer = self._start(before)
            return self._writer

    def _start(self, before: ChainHead | None) -> ChainWriter:
        start = StartNote(
            self._reporter,
            self._now(),
            None if before is None else before.chain,
            "" if before is None else before.head,
        )
        return ChainWriter(
            self._directory,
            start.to_body(),
            owner=self._owner,
            now=self._now,
            segment_bytes=self._segment_bytes,
            is_durable=self._is_durable,
        )

    def _end(self, writer: ChainWriter) -> None:
        with self._lock:
            if writer is self._writer:
                self._writer = None
        writer.close()
