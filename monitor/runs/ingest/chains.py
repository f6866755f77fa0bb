"""Store the records of reporters' chains: each once, in the transaction that stores its report."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.utils import timezone
from psycopg.errors import ForeignKeyViolation

from monitor.core.db import binary
from monitor.models import Reporter
from monitor.models.chain import Disposition
from monitor.runs.ingest.chain_limit import count_extra, require_room
from monitor.runs.ingest.disk_guard import raising_depot_full, require_space
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.service import ingest_all
from reporters.spool.notes import DroppedNote, MalformedNote, StartNote
from reporters.spool.receipts import ConflictingRecord, Receipt, RecordRange, RefusedRecord
from reporters.spool.records import REPORT, START, Part, Record

logger = logging.getLogger(__name__)
_ERROR_CHARACTERS = 500
# Chains are inserted and locked in the order of their names, and before any run: requests do not deadlock.
_LOCK = """
SELECT chain.uuid, chain.id, reporter.name = %b
FROM monitor_chain AS chain JOIN monitor_reporter AS reporter ON reporter.id = chain.reporter_id
WHERE chain.uuid = ANY (%b) ORDER BY chain.uuid FOR NO KEY UPDATE OF chain
"""
_CREATE = """
INSERT INTO monitor_chain (reporter_id, uuid, first_seen_at, declared_next, declared_head)
SELECT reporter.id, seen.uuid, %b, 0, '' FROM unnest(%b::uuid[]) AS seen (uuid), monitor_reporter AS reporter
WHERE reporter.name = %b ORDER BY seen.uuid
ON CONFLICT (uuid) DO NOTHING
"""
_STORED = """
SELECT part.uuid, record.sequence, encode(record.hash, 'hex'), record.disposition, record.run, record.text
FROM unnest(%b::uuid[], %b::bigint[], %b::bigint[], %b::bigint[]) AS part (uuid, chain, first, last)
JOIN monitor_chainrecord AS record
    ON record.chain_id = part.chain AND record.sequence BETWEEN part.first - 1 AND part.last
"""
_INSERT = """
INSERT INTO monitor_chainrecord
    (chain_id, sequence, kind, hash, disposition, run, slot, received_at, text)
SELECT chain, sequence, kind, decode(hash, 'hex'), disposition, run, slot, %b, text
FROM unnest(%b::bigint[], %b::bigint[], %b::text[], %b::text[], %b::smallint[], %b::uuid[],
    %b::timestamptz[], %b::text[])
    AS new (chain, sequence, kind, hash, disposition, run, slot, text)
"""
_DECLARE = """
INSERT INTO monitor_chain (reporter_id, uuid, first_seen_at, declared_at, declared_next, declared_head)
SELECT reporter.id, head.uuid, %b, %b, head.next, head.hash
FROM unnest(%b::uuid[], %b::bigint[], %b::text[]) AS head (uuid, next, hash), monitor_reporter AS reporter
WHERE reporter.name = %b ORDER BY head.uuid
ON CONFLICT (uuid) DO UPDATE SET
    declared_at = EXCLUDED.declared_at, declared_next = EXCLUDED.declared_next,
    declared_head = EXCLUDED.declared_head
WHERE monitor_chain.reporter_id = EXCLUDED.reporter_id
    AND monitor_chain.declared_next < EXCLUDED.declared_next
"""
_CONTRADICTED = """
SELECT chain.uuid, head.next, reporter.name, chain.declared_next
FROM unnest(%b::uuid[], %b::bigint[], %b::text[]) AS head (uuid, next, hash)
JOIN monitor_chain AS chain ON chain.uuid = head.uuid
JOIN monitor_reporter AS reporter ON reporter.id = chain.reporter_id
WHERE reporter.name <> %b OR chain.declared_next > head.next
    OR chain.declared_next = head.next AND chain.declared_head NOT IN ('', head.hash)
"""


@dataclass(frozen=True, slots=True)
class DeclaredHead:
    """The end of a chain, as its reporter says: the number of its next record, and the hash of its last."""

    chain: uuid.UUID
    next: int
    head: str


class _Key(NamedTuple):
    chain: uuid.UUID
    sequence: int


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What becomes of a record; *text* is the body of a note, or why the record is refused."""

    disposition: Disposition
    run: uuid.UUID | None = None
    slot: datetime | None = None
    text: str = ""

    @classmethod
    def refused(cls, error: str) -> _Verdict:
        return cls(Disposition.REFUSED, text=error[:_ERROR_CHARACTERS])


@dataclass(frozen=True, slots=True)
class _StoredRecord:
    hash: str
    verdict: _Verdict


@dataclass(frozen=True)
class _Sorted:
    """Records by what has to be done: *known* are settled, *fresh* have to be stored."""

    known: dict[_Key, _Verdict]
    fresh: dict[_Key, Record]


def ingest_parts(reporter: str, parts: Sequence[Part]) -> Receipt:
    """Store the records of *parts*, which *reporter* sent, in one transaction with their reports.

    A record that arrives again is stored once and gets the same receipt. A premature report (see
    ``ReportReceipt``) is not stored, and the receipt does not cover it: it will be sent again. Refused are
    reports that the depot can never store, records of another reporter's chain, and records that contradict
    a stored record of their chain: the last two are not stored and are logged.

    Raises:
        Reporter.DoesNotExist: there is no reporter of this name.
        TooManyChains: the reporter has too many open chains to start those that are new.
        TooManyExtraRecords: it sent too many records without a stored report today.
        DepotFull: the disk has only the reserve left.
        DatabaseError: the depot is unavailable.
    """
    try:
        return _ingest(reporter, parts)
    except IntegrityError as error:
        if not isinstance(error.__cause__, ForeignKeyViolation):
            raise
        return _ingest(reporter, parts)  # a series was deleted meanwhile


def declare_heads(reporter: str, heads: Iterable[DeclaredHead]) -> None:
    """Record how far the chains of *reporter* go, as it says in an exchange.

    A head behind the recorded one, or of another reporter's chain, changes nothing and is logged.

    Raises:
        TooManyChains: the reporter has too many open chains to start those that are new.
    """
    declared = {head.chain: head for head in heads}
    if not declared:
        return
    require_room(reporter, declared)
    columns = [
        list(declared),
        [head.next for head in declared.values()],
        [head.head for head in declared.values()],
    ]
    now = timezone.now()
    with binary.cursor() as cursor:
        cursor.execute(_DECLARE, [now, now, *columns, reporter])
        if cursor.rowcount < len(declared):
            cursor.execute(_CONTRADICTED, [*columns, reporter])
            for chain, number, owner, recorded in cursor.fetchall():
                own = f"declared record {recorded}, or another head, earlier"
                logger.warning(
                    "the reporter %r declares that chain %s ends before record %d, but %s",
                    reporter, chain, number, own if owner == reporter else f"it is of {owner!r}",
                )  # fmt: skip


def _ingest(reporter: str, parts: Sequence[Part]) -> Receipt:
    require_space()
    with raising_depot_full(), transaction.atomic():
        chains = _lock(reporter, {part.chain for part in parts})
        records = _sort(reporter, parts, chains)
        verdicts = _judge(reporter, records.fresh)
        _insert({key: chains[key.chain] for key in verdicts}, records.fresh, verdicts)
        count_extra(reporter, sum(each.disposition != Disposition.STORED for each in verdicts.values()))
    return _receipt(reporter, parts, records.known | verdicts)


def _lock(reporter: str, names: set[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Lock the chains *names*, and create missing ones; return the keys of the chains of *reporter*."""
    wanted = sorted(names)
    with binary.cursor() as cursor:
        rows = cursor.execute(_LOCK, [reporter, wanted]).fetchall()
        if len(rows) < len(wanted):
            missing = names - {name for name, _, _ in rows}
            require_room(reporter, missing)
            cursor.execute(_CREATE, [timezone.now(), list(missing), reporter])
            rows = cursor.execute(_LOCK, [reporter, wanted]).fetchall()
    if len(rows) < len(wanted):
        raise Reporter.DoesNotExist(f"there is no reporter {reporter!r}")
    return {name: key for name, key, is_own in rows if is_own}


def _sort(reporter: str, parts: Sequence[Part], chains: Mapping[uuid.UUID, int]) -> _Sorted:
    """Compare *parts* with the records that are stored."""
    stored = _stored([part for part in parts if part.chain in chains], chains)
    result = _Sorted({}, {})
    for part in sorted(parts, key=lambda part: (part.chain, part.records[0].sequence)):
        error = _contradiction(part, stored) if part.chain in chains else "the chain is of another reporter"
        if error:
            logger.warning(
                "records %d to %d of chain %s, which the reporter %r sent, are refused: %s",
                part.records[0].sequence, part.records[-1].sequence, part.chain, reporter, error,
            )  # fmt: skip
        for record in part.records:
            key = _Key(part.chain, record.sequence)
            before = stored.get(key)
            if before is not None and before.hash == record.hash and part.chain in chains:
                result.known[key] = before.verdict
            elif error:
                result.known[key] = _Verdict.refused(error)
            else:
                result.fresh[key] = record
                stored[key] = _StoredRecord(record.hash, _Verdict(Disposition.NOTE))
    return result


def _stored(parts: Sequence[Part], chains: Mapping[uuid.UUID, int]) -> dict[_Key, _StoredRecord]:
    """Return the stored records among those of *parts* and the one before each part."""
    columns = [
        [part.chain for part in parts],
        [chains[part.chain] for part in parts],
        [part.records[0].sequence for part in parts],
        [part.records[-1].sequence for part in parts],
    ]
    with binary.cursor() as cursor:
        cursor.execute(_STORED, columns)
        return {
            _Key(chain, sequence): _StoredRecord(hash_, _Verdict(Disposition(disposition), run, text=text))
            for chain, sequence, hash_, disposition, run, text in cursor.fetchall()
        }


def _contradiction(part: Part, stored: Mapping[_Key, _StoredRecord]) -> str:
    """Return how *part* contradicts the records stored before; empty if it continues them.

    The records behind a contradiction continue another history, so the whole part is refused.
    """
    first = part.records[0]
    before = stored.get(_Key(part.chain, first.sequence - 1))
    if before is not None and before.hash != first.previous:
        return f"record {first.sequence} does not continue the record {first.sequence - 1} that was received"
    for record in part.records:
        other = stored.get(_Key(part.chain, record.sequence))
        if other is not None and other.hash != record.hash:
            return f"another record {record.sequence}, with the hash {other.hash}, was received before"
    return ""


def _judge(reporter: str, fresh: Mapping[_Key, Record]) -> dict[_Key, _Verdict]:
    """Store the reports among *fresh*, and check its notes; return what becomes of each settled record."""
    verdicts = {key: _note(reporter, record) for key, record in fresh.items() if record.kind != REPORT}
    reports = {key: record for key, record in fresh.items() if record.kind == REPORT}
    bodies = [record.body for record in reports.values()]
    receipts = ingest_all(bodies, senders=[reporter] * len(bodies)) if bodies else []
    reported = {
        key: _reported(receipt)
        for key, receipt in zip(reports, receipts, strict=True)
        if not receipt.premature
    }
    return verdicts | reported


def _note(reporter: str, record: Record) -> _Verdict:
    try:
        if record.kind != START:
            DroppedNote.from_body(record.body)
        elif (named := StartNote.from_body(record.body).reporter) != reporter:
            return _Verdict.refused(f"reporter: expected {reporter!r}, got {named!r}")
    except MalformedNote as error:
        return _Verdict.refused(str(error))
    return _Verdict(Disposition.NOTE, text=record.body.decode())


def _reported(receipt: ReportReceipt) -> _Verdict:
    if receipt.stored is None:
        return replace(_Verdict.refused(receipt.error), run=receipt.run)
    disposition = (
        Disposition.CONFLICT
        if receipt.conflict
        else Disposition.DUPLICATE
        if receipt.duplicate
        else Disposition.STORED
    )
    return _Verdict(disposition, *receipt.stored)


def _insert(
    chains: Mapping[_Key, int], records: Mapping[_Key, Record], verdicts: Mapping[_Key, _Verdict]
) -> None:
    if not verdicts:
        return
    rows = [
        (
            chains[key],
            key.sequence,
            records[key].kind,
            records[key].hash,
            int(verdict.disposition),
            verdict.run,
            verdict.slot,
            verdict.text,
        )
        for key, verdict in verdicts.items()
    ]
    with binary.cursor() as cursor:
        cursor.execute(_INSERT, [timezone.now(), *(list(column) for column in zip(*rows, strict=True))])


def _receipt(reporter: str, parts: Sequence[Part], verdicts: Mapping[_Key, _Verdict]) -> Receipt:
    refused = [
        RefusedRecord(*key, verdict.text)
        for key, verdict in verdicts.items()
        if verdict.disposition == Disposition.REFUSED
    ]
    conflicts = [
        ConflictingRecord(*key, verdict.run)
        for key, verdict in verdicts.items()
        if verdict.disposition == Disposition.CONFLICT and verdict.run is not None
    ]
    return Receipt(
        reporter, timezone.now(), tuple(_settled(parts, verdicts)), tuple(refused), tuple(conflicts)
    )


def _settled(parts: Sequence[Part], verdicts: Mapping[_Key, _Verdict]) -> Iterator[RecordRange]:
    """Yield the ranges of records with a verdict, for each part in order."""
    for part in parts:
        records = [(_Key(part.chain, record.sequence) in verdicts, record) for record in part.records]
        for is_settled, group in groupby(records, itemgetter(0)):
            if is_settled:
                settled = [record for _, record in group]
                yield RecordRange(part.chain, settled[0].sequence, settled[-1].sequence, settled[-1].hash)
