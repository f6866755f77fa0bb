"""Store histories that other systems measured, as if their runs had been reported in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from django.db import DataError, transaction
from django.utils import timezone

from monitor.core.db import analyze
from monitor.models import RawReport, Run
from monitor.models.run import REPORTED
from monitor.runs.imports.as_report import build_report, encode_report, measured_fields
from monitor.runs.imports.formats.base import (
    ImportedRun,
    Importer,
    Item,
    MalformedRecord,
    SkippedRecord,
    Unreadable,
)
from monitor.runs.imports.targets import Destination, ImportRefused, Target, find_or_create, update_parameters
from monitor.runs.ingest.plausible_times import AHEAD
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire

if TYPE_CHECKING:
    import uuid

    from monitor.runs.ingest.receipt import ReportReceipt

BATCH = 1000
ANALYZE_FROM = 1000  # new runs; a smaller import leaves ANALYZE to the daily housekeeping
_TRIGGER_CHARACTERS = 900


@dataclass
class ImportTally:
    """Counts of an import so far.

    Attributes:
        known: runs that were stored before.
        differing: known runs whose stored measurement differs from the file's; the stored measurement stays.
        malformed: refused records.
        skipped: skipped records, by reason.
        series: the names of the series.
    """

    new: int = 0
    known: int = 0
    differing: int = 0
    malformed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    series: set[str] = field(default_factory=set)

    @property
    def runs(self) -> int:
        return self.new + self.known


@dataclass(frozen=True)
class ImportListener:
    """Callbacks of an import: *malformed* is called for each refused record, *progress* after every batch."""

    malformed: Callable[[MalformedRecord], None]
    progress: Callable[[ImportTally], None]


class ImportStopped(Exception):
    """A record was refused in strict mode. The records before it are stored; the rest of the file is not."""


class _RunRefused(Exception):
    """The depot refused the run at *index* of a batch."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(index, reason)
        self.index, self.reason = index, reason


def import_history(
    importer: Importer,
    stream: BinaryIO,
    target: Target,
    file: str,
    listener: ImportListener,
    *,
    strict: bool = False,
) -> ImportTally:
    """Store all runs in *stream*, the content of *file*; runs that are stored already stay unchanged.

    Each batch is stored in full before the next one is read, so an interrupted import can be repeated.

    Raises:
        Unreadable, ImportRefused: the import cannot continue; all records before the error are stored.
        ImportStopped: with *strict*, at the first refused record; without *strict*, *listener* receives the
            record.
        DepotFull, DatabaseError: the depot is full or unavailable; the previous batches are stored.
    """
    importing = _Import(target, file, listener, strict=strict)
    try:
        try:
            for item in importer.read(stream):
                importing.add(item)
        except Unreadable:
            importing.store_batch()
            raise
        importing.store_batch()
    except (Unreadable, ImportRefused, ImportStopped):
        importing.finish()
        raise
    importing.finish()
    return importing.tally


class _Import:
    """State of one import; ``import_history`` explains the arguments."""

    def __init__(self, target: Target, file: str, listener: ImportListener, *, strict: bool) -> None:
        self.tally = ImportTally()
        self._target, self._file, self._listener, self._strict = target, file, listener, strict
        self._trigger = f"import: {target.kind} {file}"[:_TRIGGER_CHARACTERS]
        self._started_at = timezone.now()
        self._destinations: dict[str, Destination] = {}
        self._batch: list[ImportedRun] = []

    def add(self, item: Item) -> None:
        if isinstance(item, ImportedRun):
            self._batch.append(item)
            if len(self._batch) == BATCH:
                self.store_batch()
        elif isinstance(item, SkippedRecord):
            self.tally.skipped[item.reason] += 1
        else:
            if self._strict:
                self.store_batch()  # first: a refused run before this record ends the import
            self._refuse(item)

    def store_batch(self) -> None:
        """Store the new runs of the batch; if a run ends the import, store only the runs before it."""
        batch, self._batch = self._batch, []
        new: dict[uuid.UUID, ImportedRun] = {}
        try:
            self._select_new(batch, new)
        except (ImportRefused, ImportStopped):
            self._write(list(new.items()))
            raise
        self._write(list(new.items()))

    def finish(self) -> None:
        for destination in self._destinations.values():
            update_parameters(destination)
        if self.tally.new >= ANALYZE_FROM:
            for table in analyze.outdated(timezone.now()):
                analyze.analyse(table)

    def _refuse(self, record: MalformedRecord) -> None:
        if self._strict:
            raise ImportStopped(str(record))
        self.tally.malformed += 1
        self._listener.malformed(record)

    def _select_new(self, batch: Sequence[ImportedRun], new: dict[uuid.UUID, ImportedRun]) -> None:
        """Add the runs of *batch* that are not stored yet to *new*, by run id.

        If this method raises an error, *new* contains the runs before the error; a return value would be
        lost.
        """
        run_ids = [wire.run_id(self._target.name_of(run), run.slot) for run in batch]
        stored = _stored_reports(run_ids, batch)
        for run_id, run in zip(run_ids, batch, strict=True):
            malformed = check_run(self._target, run)
            if malformed is not None:
                self._refuse(malformed)
                continue
            try:
                self._destination(run).add(run)
            except DataError as error:  # for example: PostgreSQL cannot store the parameters of the series
                self._refuse(_not_storable(run, str(error).partition("\n")[0]))
                continue
            if run_id in new:
                self._count_repeated(run, is_same=replace(run, where=new[run_id].where) == new[run_id])
            elif run_id in stored:
                self._count_stored(run, run_id, stored[run_id])
            else:
                new[run_id] = run

    def _destination(self, run: ImportedRun) -> Destination:
        destination = self._destinations.get(run.series)
        if destination is None:
            try:
                destination = find_or_create(self._target, run)
            except ImportRefused as error:
                raise ImportRefused(f"{run.where}: {error}") from None
            self._destinations[run.series] = destination
            self.tally.series.add(destination.series.name)
        return destination

    def _count_stored(self, run: ImportedRun, run_id: uuid.UUID, raw: RawReport | None) -> None:
        """Count *run*, which is stored already; *raw* is its report, or None if the report was deleted.

        With a report, the stored measurement is compared with the measurement of *run*.
        """
        if raw is None or measured_fields(raw.body) == measured_fields(self._body(run_id, run)):
            self.tally.known += 1
        elif raw.received_at >= self._started_at and self._is_of_this_file(raw):
            self._count_repeated(run, is_same=False)
        else:
            self.tally.known += 1
            self.tally.differing += 1

    def _count_repeated(self, run: ImportedRun, *, is_same: bool) -> None:
        """Count a run that has the same series and slot as an earlier run of the file.

        With *is_same*, both runs have the same measurement; otherwise the run is refused.
        """
        if is_same:
            self.tally.known += 1
        else:
            expected = "a time that no other run of its series in this file has"
            self._refuse(MalformedRecord(run.where, "time", expected, run.slot.isoformat()))

    def _is_of_this_file(self, raw: RawReport) -> bool:
        return any(line.text.endswith(f" of {self._file}") for line in raw.parsed().log)

    def _write(self, new: Sequence[tuple[uuid.UUID, ImportedRun]]) -> None:
        try:
            receipts = self._ingest(new)
        except _RunRefused as refused:
            self._write(new[: refused.index])
            _, run = new[refused.index]
            raise ImportStopped(str(_not_storable(run, refused.reason))) from None
        meanwhile = [each for each, receipt in zip(new, receipts, strict=True) if receipt.conflict]
        stored = _stored_reports([run_id for run_id, _ in meanwhile], [run for _, run in meanwhile])
        for (run_id, run), receipt in zip(new, receipts, strict=True):
            if receipt.conflict:  # a concurrent import stored it meanwhile
                self._count_stored(run, run_id, stored[run_id])
            elif receipt.duplicate:
                self.tally.known += 1
            elif receipt.accepted:
                self.tally.new += 1
            else:
                self._refuse(_not_storable(run, receipt.error))
        self._listener.progress(self.tally)

    def _ingest(self, new: Sequence[tuple[uuid.UUID, ImportedRun]]) -> list[ReportReceipt]:
        """Ingest *new*, pairs of (run id, run); return a receipt for each.

        In strict mode a refused run rolls back the whole call.

        Raises:
            _RunRefused: in strict mode, a run was refused.
        """
        if not new:
            return []
        with transaction.atomic() if self._strict else nullcontext():
            bodies = [self._body(run_id, run) for run_id, run in new]
            receipts = ingest_all(bodies, trigger=self._trigger)
            refused = [index for index, receipt in enumerate(receipts) if not receipt.accepted]
            if refused and self._strict:
                raise _RunRefused(refused[0], receipts[refused[0]].error)
        return receipts

    def _body(self, run_id: uuid.UUID, run: ImportedRun) -> bytes:
        destination = self._destinations[run.series]
        origin = f"{run.where} of {self._file}"
        return encode_report(build_report(run, run_id, destination, self._target.probe, origin))


def check_run(target: Target, run: ImportedRun) -> MalformedRecord | None:
    """Return why *run* cannot be stored, regardless of the content of the depot; None if it can be stored."""
    latest = timezone.now() + AHEAD
    if run.slot > latest or run.seconds > (latest - run.slot).total_seconds():
        got = f"{wire.rfc3339(run.slot)}, and {run.seconds:g} s"
        return MalformedRecord(run.where, "time", "a run that has ended by now", got)
    return target.check_name(run)


def _stored_reports(
    run_ids: Sequence[uuid.UUID], batch: Sequence[ImportedRun]
) -> dict[uuid.UUID, RawReport | None]:
    """Return the raw report of each of *run_ids* that was reported before; None if the report was deleted."""
    if not batch:
        return {}
    slots = [run.slot for run in batch]
    between = {"slot__gte": min(slots), "slot__lte": max(slots)}
    reported = Run.objects.filter(pk__in=run_ids, state__in=REPORTED, **between).order_by()
    reports: dict[uuid.UUID, RawReport | None] = dict.fromkeys(reported.values_list("pk", flat=True))
    if reports:
        raw_reports = RawReport.objects.filter(run__in=list(reports), **between).order_by()
        reports.update({raw.run_id: raw for raw in raw_reports})
    return reports


def _not_storable(run: ImportedRun, reason: str) -> MalformedRecord:
    return MalformedRecord(run.where, "run", "a run that the depot can store", reason)
