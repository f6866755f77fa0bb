"""Audit the chains of a reporter: every record is in the depot, once, and with the report that was sent."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeVar

from psycopg.rows import class_row

from monitor.core.compression import unpack
from monitor.core.db import binary
from monitor.core.db.snapshot import snapshot
from monitor.models import Chain, ChainRecord, Reporter, ReporterStatus
from monitor.models.chain import Disposition
from reporters.spool.notes import DroppedNote, MalformedNote, StartNote
from reporters.spool.ranges import Ranges
from reporters.spool.records import DROPPED, START, first_hash, record_hash

Note = TypeVar("Note", StartNote, DroppedNote)
_KINDS: dict[type, str] = {StartNote: START, DroppedNote: DROPPED}
BATCH = 1000  # records in memory, with their reports
MOST_FINDINGS = 1000
MISSING, DOUBLED, ALTERED = "missing", "doubled", "altered"
_NEXT = """
SELECT sequence, kind, encode(hash, 'hex') AS hash, disposition, run, slot, text
FROM monitor_chainrecord WHERE chain_id = %b AND sequence >= %b ORDER BY sequence LIMIT %b
"""
_BODIES = """
SELECT raw.run_id, packing, packed FROM unnest(%b::uuid[], %b::timestamptz[]) AS wanted (run, slot)
JOIN monitor_rawreport AS raw ON raw.run_id = wanted.run AND raw.slot = wanted.slot
WHERE raw.slot BETWEEN %b AND %b
"""
_CONFLICTING = "SELECT run, packing, packed FROM monitor_conflictingreport WHERE run = ANY (%b)"
_DOUBLE_ROWS = (
    "SELECT run_id FROM monitor_rawreport WHERE run_id = ANY (%b) GROUP BY run_id HAVING count(*) > 1"
)
# Runs without a report that retention has deleted, and runs that were deleted with their series.
_GONE = """
SELECT wanted.run FROM unnest(%b::uuid[], %b::timestamptz[]) AS wanted (run, slot)
LEFT JOIN monitor_run AS run
    ON run.id = wanted.run AND run.slot = wanted.slot AND run.slot BETWEEN %b AND %b
LEFT JOIN monitor_retentioncutoff AS cutoff ON cutoff.series_id = run.series_id AND cutoff.kind = 'reports'
WHERE run.id IS NULL OR wanted.slot < cutoff.kept_from
"""
_DOUBLE_RECORDS = """
SELECT run, count(*) FROM monitor_chainrecord AS record JOIN monitor_chain AS chain ON chain.id = chain_id
WHERE chain.reporter_id = %b AND disposition = 1 GROUP BY run HAVING count(*) > 1 ORDER BY run
"""
_HAS_HASH = """
SELECT EXISTS (SELECT FROM monitor_chainrecord WHERE chain_id = %b AND hash = decode(%b, 'hex'))
"""


@dataclass
class ChainFinding:
    """What is wrong with records *first* to *last* of *chain*; *kind* is missing, doubled or altered."""

    kind: str
    chain: uuid.UUID | None
    first: int
    last: int
    what: str

    def __str__(self) -> str:
        if self.chain is None:
            return self.what
        records = (
            f"record {self.first}" if self.first == self.last else f"records {self.first} to {self.last}"
        )
        return f"chain {self.chain}, {records}: {self.what}"


@dataclass
class ChainAudit:
    """The result of an audit: numbers of records.

    Attributes:
        chains, records: what the depot has received.
        missing: declared by the reporter, never received, and not reported as dropped.
        doubled: of a run that another record has stored, or whose report is stored twice.
        altered: records whose hash is not that of the stored report and the record before.
        waiting: not received, but the spool had so many at the last exchange; not counted as missing.
        dropped: not received; the reporter said that it dropped them.
        refused: received; the depot could not store their reports.
        conflicts: received after another report of the run.
        expired: not checked, because retention has deleted their reports, or because their series is deleted.
        unlinked: not checked, because the record before is missing or was dropped.
        findings: the first ``MOST_FINDINGS`` ranges that are wrong.
    """

    reporter: str
    chains: int = 0
    records: int = 0
    missing: int = 0
    doubled: int = 0
    altered: int = 0
    waiting: int = 0
    dropped: int = 0
    refused: int = 0
    conflicts: int = 0
    expired: int = 0
    unlinked: int = 0
    findings: list[ChainFinding] = field(default_factory=list)

    @property
    def others(self) -> dict[str, int]:
        """Return numbers of records that are neither missing, doubled nor altered, by what they are."""
        return {
            "waiting in the spool of the reporter, as of its last exchange": self.waiting,
            "dropped by the reporter, as it said": self.dropped,
            "refused: the depot cannot store their reports": self.refused,
            "conflicting with an earlier report of their run": self.conflicts,
            "not checked: their reports have expired, or their series is deleted": self.expired,
            "not checked: the record before was not received": self.unlinked,
        }

    @property
    def is_sound(self) -> bool:
        return not (self.missing or self.doubled or self.altered)

    def add(self, kind: str, chain: uuid.UUID | None, first: int, last: int, what: str) -> None:
        """Count records *first* to *last* as *kind*; extend the newest finding if they continue it."""
        setattr(self, kind, getattr(self, kind) + last - first + 1)
        newest = self.findings[-1] if self.findings else None
        if newest and (newest.kind, newest.chain, newest.last, newest.what) == (kind, chain, first - 1, what):
            newest.last = last
        elif len(self.findings) < MOST_FINDINGS:
            self.findings.append(ChainFinding(kind, chain, first, last, what))


class _AuditedRecord(NamedTuple):
    sequence: int
    kind: str
    hash: str
    disposition: int
    run: uuid.UUID | None
    slot: datetime | None
    text: str


@dataclass(frozen=True)
class _Reports:
    """The reports of a batch of records: stored bodies and conflicting ones, by run; unreadable ones lack."""

    stored: Mapping[uuid.UUID, bytes | None]
    conflicting: Mapping[uuid.UUID, Sequence[bytes]]
    gone: set[uuid.UUID]
    doubled: set[uuid.UUID]

    def candidates(self, row: _AuditedRecord) -> Sequence[bytes] | None:
        """Return the bodies that *row* may have; None if they were deleted."""
        if row.run is None:
            return [row.text.encode()]
        if row.disposition == Disposition.CONFLICT:
            bodies = self.conflicting.get(row.run, [])
        else:
            bodies = [body] if (body := self.stored.get(row.run)) is not None else []
        return None if not bodies and row.run in self.gone else bodies


def audit_chains(reporter: Reporter, *, batch: int = BATCH) -> ChainAudit:
    """Compare the chains of *reporter* with the depot, as of one instant; *batch* records are in memory."""
    audit = ChainAudit(reporter.name)
    with snapshot():
        dropped = _dropped(reporter)
        incomplete = set()
        for chain in Chain.objects.filter(reporter=reporter).iterator():
            before = audit.missing + audit.dropped
            _audit_chain(chain, dropped.get(chain.uuid, Ranges()), batch, audit)
            if audit.missing + audit.dropped > before:
                incomplete.add(chain.uuid)
        _find_lost_ends(reporter, dropped, incomplete, audit)
        _find_doubled(reporter, audit)
        _subtract_waiting(reporter, audit)
    return audit


def _audit_chain(chain: Chain, dropped: Ranges, batch: int, audit: ChainAudit) -> None:
    audit.chains += 1
    expected, previous = 0, first_hash(chain.uuid)
    for rows in _batches(chain, batch):
        reports = _reports(rows)
        for row in rows:
            is_linked = row.sequence == expected
            if not is_linked:
                _count_gap(chain, expected, row.sequence - 1, dropped, audit)
            _audit_record(chain, row, previous if is_linked else None, reports, audit)
            expected, previous = row.sequence + 1, row.hash
            if expected == chain.declared_next and chain.declared_head not in ("", row.hash):
                what = f"its hash is not {chain.declared_head}, as the reporter declared"
                audit.add(ALTERED, chain.uuid, row.sequence, row.sequence, what)
    if expected < chain.declared_next:
        _count_gap(chain, expected, chain.declared_next - 1, dropped, audit)


def _count_gap(chain: Chain, first: int, last: int, dropped: Ranges, audit: ChainAudit) -> None:
    audit.dropped += dropped.count(first, last)
    for gap in dropped.missing(first, last):
        audit.add(MISSING, chain.uuid, *gap, "missing")


def _audit_record(
    chain: Chain, row: _AuditedRecord, previous: str | None, reports: _Reports, audit: ChainAudit
) -> None:
    """Check *row*; *previous* is the hash of the record before, None if that was not received."""
    audit.records += 1
    audit.conflicts += row.disposition == Disposition.CONFLICT
    if row.run in reports.doubled and row.disposition == Disposition.STORED:
        audit.add(DOUBLED, chain.uuid, row.sequence, row.sequence, "its run has several stored reports")
    if row.disposition == Disposition.REFUSED:
        audit.refused += 1
        return
    bodies = reports.candidates(row)
    if bodies is None:
        audit.expired += 1
    elif not bodies:
        audit.add(ALTERED, chain.uuid, row.sequence, row.sequence, "its report is not in the depot")
    elif previous is None:
        audit.unlinked += 1
    elif all(record_hash(previous, row.sequence, row.kind, body) != row.hash for body in bodies):
        what = "its hash is not that of the stored report and the record before"
        audit.add(ALTERED, chain.uuid, row.sequence, row.sequence, what)


def _batches(chain: Chain, size: int) -> Iterator[list[_AuditedRecord]]:
    first = 0
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(_AuditedRecord)
        while rows := cursor.execute(_NEXT, [chain.pk, first, size]).fetchall():
            yield rows
            first = rows[-1].sequence + 1


def _reports(rows: Sequence[_AuditedRecord]) -> _Reports:
    """Read the reports of *rows*."""
    slots = {row.run: row.slot for row in rows if row.run is not None and row.slot is not None}
    conflicting: defaultdict[uuid.UUID, list[bytes]] = defaultdict(list)
    if not slots:
        return _Reports({}, conflicting, set(), set())
    runs, times = list(slots), list(slots.values())
    with binary.cursor() as cursor:
        cursor.execute(_BODIES, [runs, times, min(times), max(times)])
        stored = {run: _unpacked(packing, packed) for run, packing, packed in cursor.fetchall()}
        for run, packing, packed in cursor.execute(_CONFLICTING, [runs]):
            if (body := _unpacked(packing, packed)) is not None:
                conflicting[run].append(body)
        doubled = {run for (run,) in cursor.execute(_DOUBLE_ROWS, [runs])}
        in_conflict = {row.run for row in rows if row.disposition == Disposition.CONFLICT}
        lacking = list((slots.keys() - stored.keys()) | (slots.keys() & in_conflict - conflicting.keys()))
        times = [slots[run] for run in lacking]
        gone: set[uuid.UUID] = set()
        if lacking:
            cursor.execute(_GONE, [lacking, times, min(times), max(times)])
            gone = {run for (run,) in cursor.fetchall()}
    return _Reports(stored, conflicting, gone - stored.keys(), doubled)


def _unpacked(packing: int, packed: bytes) -> bytes | None:
    try:
        return unpack(packing, bytes(packed))
    except ValueError:
        return None


def _notes(reporter: Reporter, kind: type[Note]) -> Iterator[tuple[uuid.UUID, Note]]:
    """Yield each note of *kind* with its chain. An altered note may be malformed: its record is a finding."""
    records = ChainRecord.objects.filter(
        chain__reporter=reporter, kind=_KINDS[kind], disposition=Disposition.NOTE
    )
    rows = records.order_by("chain", "sequence").values_list("chain__uuid", "text")
    for chain, text in rows.iterator():
        with suppress(MalformedNote):
            yield chain, kind.from_body(text.encode())


def _dropped(reporter: Reporter) -> dict[uuid.UUID, Ranges]:
    """Return the records that *reporter* said it dropped, by chain."""
    dropped: dict[uuid.UUID, Ranges] = {}
    for _, note in _notes(reporter, DroppedNote):
        dropped.setdefault(note.chain, Ranges()).add(note.first, note.last)
    return dropped


def _find_lost_ends(
    reporter: Reporter, dropped: Mapping[uuid.UUID, Ranges], incomplete: set[uuid.UUID], audit: ChainAudit
) -> None:
    """Find chains whose end is missing, though later chains name it.

    In an *incomplete* chain the named record may be one that is known to be missing or dropped.
    """
    chains = Chain.objects.filter(reporter=reporter)
    for later, note in _notes(reporter, StartNote):
        if note.previous_chain is None or note.previous_chain in incomplete:
            continue
        chain = chains.filter(uuid=note.previous_chain).first()
        if chain is not None and _has_record(chain, note.previous_head):
            continue
        last = chain.records.order_by("sequence").last() if chain else None
        number = 0 if last is None else last.sequence + 1
        if number not in dropped.get(note.previous_chain, ()):
            what = (
                f"missing: chain {later} continues a record with the hash {note.previous_head or 'unknown'}"
            )
            audit.add(MISSING, note.previous_chain, number, number, what)


def _has_record(chain: Chain, hash_: str) -> bool:
    with binary.cursor() as cursor:
        row = cursor.execute(_HAS_HASH, [chain.pk, hash_]).fetchone()
        return not hash_ or bool(row and row[0])


def _find_doubled(reporter: Reporter, audit: ChainAudit) -> None:
    with binary.cursor() as cursor:
        for run, count in cursor.execute(_DOUBLE_RECORDS, [reporter.pk]):
            audit.add(DOUBLED, None, 2, count, f"run {run}: {count} records are stored as its report")


def _subtract_waiting(reporter: Reporter, audit: ChainAudit) -> None:
    """Count missing records as waiting if the spool had as many when the reporter was last seen."""
    status = ReporterStatus.objects.filter(reporter=reporter).first()
    if status is not None and audit.missing <= status.spool_records:
        audit.waiting, audit.missing = audit.missing, 0
        audit.findings = [finding for finding in audit.findings if finding.kind != MISSING]
