"""The spool: what a reporter has to say, kept in a directory until the server has it.

Each process that appends writes a chain of its own; any process may deliver all chains. Several processes
may share one spool without locks, also on NFS. A record leaves the spool only with a receipt that has its
hash, or when a bound is exceeded: then a ``dropped`` record takes its place. ``reporters.spool.chains`` says
why no record is lost when the chain of a dead writer is removed.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from reporters.spool.appender import Appender
from reporters.spool.bounds import Bounds, excess
from reporters.spool.chain_view import ChainView, SegmentView
from reporters.spool.chains import ChainHead, Chains
from reporters.spool.files import SpoolError, spool_errors, sync
from reporters.spool.lanes import Lane, Lanes
from reporters.spool.notes import DroppedNote
from reporters.spool.owner import Observer, Process
from reporters.spool.ranges import Ranges
from reporters.spool.receipts import Receipt, RecordRange, RefusedRecord
from reporters.spool.records import DROPPED, MOST_BYTES, MOST_RECORDS, REPORT, Part, Record, encode
from reporters.spool.run_index import RunIndex
from reporters.spool.set_aside import DAMAGED, REFUSED, set_aside
from reporters.spool.status import SpoolStatus, status_of

SEGMENT_BYTES = 1024 * 1024
_LEAST_SEGMENTS = 8  # of a full spool: the bounds are kept by whole segments
_TIDY_SECONDS = 10.0


@dataclass(frozen=True)
class Acknowledgement:
    """How many records a receipt has released, and why parts of it were ignored.

    *not_kept* is the number of refused records for which ``refused/`` had no room.
    """

    records: int
    ignored: tuple[str, ...]
    not_kept: int = 0


def pending_records(directory: Path) -> int:
    """Return how many records of the spool in *directory* need delivery; change nothing there.

    Raises:
        SpoolError: the directory cannot be read.
    """
    if not directory.exists():
        return 0
    chains = Chains(directory, Observer(Process.current(), time.monotonic), is_durable=False)
    with spool_errors(f"cannot read the spool {directory}"):
        chains.refresh()
    return sum(view.pending_count() for view in chains.views.values())


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


class Spool:
    """The spool of *reporter* in *directory*, which is created, readable by its owner only.

    With *is_durable* a record survives a power failure once ``append`` has returned; without it, once
    ``sync`` has returned, but the death of any process at once. *now* returns a time with its zone,
    *monotonic* seconds. Methods may be called from any thread, and raise SpoolError if the directory cannot
    be read or written. After a fork the child starts a chain of its own.
    """

    def __init__(
        self,
        directory: Path,
        reporter: str,
        bounds: Bounds | None = None,
        *,
        is_durable: bool = True,
        segment_bytes: int = SEGMENT_BYTES,
        now: Callable[[], datetime] = _utc_now,
        monotonic: Callable[[], float] = time.monotonic,
        process: Callable[[], Process] = Process.current,
    ) -> None:
        self.directory, self.reporter = directory, reporter
        self._bounds = bounds or Bounds()
        self._is_durable = is_durable
        self._segment_bytes = min(segment_bytes, self._bounds.most_bytes // _LEAST_SEGMENTS)
        self._now, self._monotonic, self._process = now, monotonic, process
        self._opened_at, self._opened_seconds = now(), monotonic()
        with spool_errors(f"cannot make the spool {directory}"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._begin()

    def _begin(self) -> None:
        """Set the state that is in the memory of this process only."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        own = self._process()
        observer = Observer(own, self._monotonic)
        self._chains = Chains(self.directory, observer, is_durable=self._is_durable)
        self._lanes = Lanes(self._report_lost, self._monotonic)
        self._runs: RunIndex | None = None
        self._tidied_at: float | None = None
        self._is_dropping = False
        self._appender = Appender(
            self.directory,
            self.reporter,
            own,
            now=self._now,
            segment_bytes=self._segment_bytes,
            is_durable=self._is_durable,
            before_segment=self._keep_bounds,
            newest=self._newest,
        )

    def append(self, body: bytes) -> Record:
        """Store *body*, a report as compact JSON, and return its record.

        Raises:
            SpoolError: *body* could not be stored, for example on a full disk; the next call may succeed.
            ValueError: *body* is empty, too large, or has a newline.
        """
        self._follow_fork()
        return self._appender.append(REPORT, body)

    def sync(self) -> None:
        """Flush the records of all writers to disk, which may take long."""
        with self._reading("write", tidying=False) as chains:
            for view in chains.views.values():
                for path in [*(segment.path for segment in view.segments), view.directory]:
                    with contextlib.suppress(FileNotFoundError):  # removed by another process
                        sync(path)
            sync(self.directory)

    def batch(
        self, most_records: int = MOST_RECORDS, most_bytes: int = MOST_BYTES, lane: Lane = Lane.BOTH
    ) -> list[Part]:
        """Return records of *lane* to deliver, empty if there are none.

        Both lanes together give fresh records, up to half of the bounds while there is a backlog, then the
        oldest: so neither delays the other. The records are in flight until ``acknowledge`` or ``release``:
        in no other batch of this process.
        """
        with self._reading("read") as chains:
            return self._lanes.batch(chains.views, most_records, most_bytes, lane)

    def release(self, parts: Iterable[Part]) -> None:
        """Return the records of *parts*, whose delivery has failed, to the spool."""
        self._follow_fork()
        with self._lock:
            self._lanes.release(parts)

    def acknowledge(self, receipt: Receipt) -> Acknowledgement:
        """Remove the records that *receipt* covers; move refused records to ``refused/``.

        The caller has verified the signature. A range whose hash is not that of our own record is ignored.
        """
        ignored: list[str] = []
        released = not_kept = 0
        with self._reading("acknowledge records in") as chains:
            if receipt.reporter != self.reporter:
                return Acknowledgement(0, (f"a receipt for the reporter {receipt.reporter!r}",))
            for covered in receipt.records:
                view = chains.views.get(covered.chain)
                if view is None:  # removed: the receipt is a repetition
                    continue
                reason = self._why_ignored(view, covered)
                if not reason:
                    try:
                        not_kept += self._set_refused_aside(view, covered, receipt.refused)
                        released += self._release_covered(view, covered)
                    except OSError as error:  # of a full disk; the server sends the receipt again
                        reason = f"cannot keep a refused record of chain {covered.chain}: {error.strerror}"
                if reason:
                    ignored.append(reason)
            for view in list(chains.views.values()):
                with contextlib.suppress(OSError):  # of a full disk: tried again with the next receipt
                    view.remove_done(is_durable=self._is_durable)
        return Acknowledgement(released, tuple(ignored), not_kept)

    def status(self) -> SpoolStatus:
        with self._reading("read") as chains:
            return status_of(chains)

    def heads(self) -> list[ChainHead]:
        """Return the heads of the chains, the oldest first. The newest stays when its chain is removed."""
        with self._reading("read") as chains:
            return chains.heads()

    def pending_runs(self, among: Iterable[uuid.UUID] | None = None) -> set[uuid.UUID]:
        """Return the runs *among* these, or all, whose reports need delivery.

        The first call reads the whole spool.
        """
        with self._reading("read") as chains:
            return self._index().pending(chains.views, among)

    def __contains__(self, run: uuid.UUID) -> bool:
        """Return whether the report of *run* needs delivery. The first call reads the whole spool."""
        return bool(self.pending_runs([run]))

    def is_empty(self) -> bool:
        """Return whether no record needs delivery."""
        with self._reading("read") as chains:
            return all(view.pending_count() == 0 for view in chains.views.values())

    def tidy(self) -> None:
        """Remove the chains of dead writers that need no delivery, and drop records beyond the bounds.

        The other methods do so every ten seconds.
        """
        with self._reading("tidy", tidying=False):
            self._tidy()

    def close(self) -> None:
        """End the chain of this process. A later ``append`` starts another chain."""
        self._follow_fork()
        self._appender.close()

    @contextlib.contextmanager
    def _reading(self, verb: str, *, tidying: bool = True) -> Iterator[Chains]:
        """Lock the state of this process and read what is new in the directory."""
        self._follow_fork()
        with self._lock, spool_errors(f"cannot {verb} the spool {self.directory}"):
            self._appender.beat()
            self._refresh()
            now = self._monotonic()
            if tidying and (self._tidied_at is None or now - self._tidied_at >= _TIDY_SECONDS):
                self._tidied_at = now
                with contextlib.suppress(OSError, SpoolError):  # a full disk must not stop delivery
                    self._tidy()
            yield self._chains

    def _follow_fork(self) -> None:
        if os.getpid() != self._pid:
            self._appender.forget()
            self._begin()

    def _refresh(self) -> None:
        for view, record in self._chains.refresh():
            self._lanes.add_fresh(view.chain, record)
            if self._runs is not None:
                self._runs.add(view.chain, record)
        if self._runs is not None:
            self._runs.prune(self._chains.views)

    def _newest(self) -> ChainHead | None:
        with self._lock:
            self._refresh()
            heads = self._chains.heads()
            return heads[-1] if heads else None

    def _index(self) -> RunIndex:
        if self._runs is None:
            self._runs = RunIndex()
            for view in self._chains.views.values():
                for segment in view.segments:
                    for record in () if view.is_done(segment) else view.load(segment):
                        self._runs.add(view.chain, record)
                    view.unload(segment)
        return self._runs

    def _why_ignored(self, view: ChainView, covered: RecordRange) -> str:
        """Return why a range of a receipt is ignored; empty if its hash is that of our record."""
        where = f"records {covered.first} to {covered.last} of chain {covered.chain}"
        if not view.logs.done.missing(covered.first, covered.last):
            return ""
        own = view.hash_of(covered.last)
        if own is None:
            return f"a receipt for {where}: no such record"
        return (
            ""
            if own == covered.hash
            else f"a receipt for {where}: expected the hash {own}, got {covered.hash}"
        )

    def _release_covered(self, view: ChainView, covered: RecordRange) -> int:
        """Record that the records of *covered* need no delivery; return how many needed it."""
        missing = view.logs.done.missing(covered.first, covered.last)
        if missing:
            view.mark_delivered(covered.first, covered.last, covered.hash)
        self._lanes.forget(view.chain, covered.first, covered.last)
        for segment in view.segments:
            if segment.records:
                view.load(segment)  # frees the memory of the delivered records
        return sum(last - first + 1 for first, last in missing)

    def _set_refused_aside(
        self, view: ChainView, covered: RecordRange, refused: Iterable[RefusedRecord]
    ) -> int:
        """Keep the refused records of *covered*; return for how many there is no room."""
        not_kept = 0
        for each in refused:
            is_covered = each.chain == view.chain and covered.first <= each.sequence <= covered.last
            if not is_covered or each.sequence in view.logs.done:
                continue
            record = view.find(each.sequence)
            if record is not None:
                name = f"{view.chain}-{record.sequence}"
                not_kept += not set_aside(self.directory / REFUSED, name, encode(record), each.error)
        return not_kept

    def _report_lost(self, view: ChainView, segment: SegmentView) -> None:
        """Set the damage in a loaded segment aside and report its records as dropped.

        What a living process of another host has written may be incomplete here for a while: NFS caches it.
        """
        if not view.has_gaps(segment):
            return
        is_dead = self._chains.is_dead(view)
        if not (is_dead or self._chains.is_local(view)):
            return
        for lost in view.lost(segment, is_dead=is_dead):
            with contextlib.suppress(SpoolError, OSError):  # a full disk: reported at the next reading
                if lost.data:
                    name = f"{view.chain}-{lost.first}"
                    set_aside(self.directory / DAMAGED, name, lost.data, lost.reason)
                self._report_dropped(view, lost.first, lost.last, lost.reason)

    def _report_dropped(self, view: ChainView, first: int, last: int, reason: str) -> None:
        self._appender.append(DROPPED, DroppedNote(view.chain, first, last, reason).to_body())
        view.mark_dropped(first, last)

    def _tidy(self) -> None:
        self._chains.remove_unfinished()
        self._keep_bounds()
        for view in list(self._chains.views.values()):
            if view.pending_count() == 0 and (not view.segments or self._chains.is_dead(view)):
                for segment in view.segments[-1:]:
                    view.load(segment)
                    self._report_lost(view, segment)
                self._chains.retire(view)

    def _keep_bounds(self) -> None:
        """Drop the oldest reports beyond the bounds; what cannot be dropped now is dropped later."""
        with self._lock, contextlib.suppress(SpoolError, OSError):
            if self._is_dropping:  # by this thread: the note of a dropped record began a segment
                return
            self._is_dropping = True
            try:
                self._refresh()
                for each in excess(
                    self._chains.views.values(),
                    self._bounds,
                    self._cautious_now(),
                    room_bytes=self._segment_bytes,
                    is_dead=self._chains.is_dead,
                ):
                    self._drop(each.view, each.segment, each.reason)
            finally:
                self._is_dropping = False

    def _cautious_now(self) -> datetime:
        """Return the earlier of the clock's time and the time since the opening: a jump drops nothing."""
        elapsed = timedelta(seconds=self._monotonic() - self._opened_seconds)
        return min(self._now(), self._opened_at + elapsed)

    def _drop(self, view: ChainView, segment: SegmentView, reason: str) -> None:
        records = view.load(segment)
        self._report_lost(view, segment)
        reports = Ranges((each.sequence, each.sequence) for each in records if each.kind == REPORT)
        for first, last in reports:
            self._report_dropped(view, first, last, reason)
            self._lanes.forget(view.chain, first, last)
        if len(reports):
            notes = [record for record in records if record.kind != REPORT]
            view.keep_only(segment, notes, is_durable=self._is_durable)
            view.remove_done(is_durable=self._is_durable)
