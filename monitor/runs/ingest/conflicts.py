"""Compare later reports of a run with its first: an equal report is a duplicate, another one a conflict."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from django.utils import timezone

from monitor.core.compression import pack, unpack
from monitor.core.db import binary
from monitor.runs.ingest.short_reports import sent_sha256
from reporters.report import rfc3339

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from monitor.runs.ingest.match_runs import MatchedReport

logger = logging.getLogger(__name__)
MOST_PER_RUN = 10  # conflicting reports that are kept: enough to find the cause, too few to fill a disk
_BODIES = """
SELECT raw.run_id, packing, packed FROM unnest(%b::uuid[], %b::timestamptz[]) AS reported (run, slot)
JOIN monitor_rawreport AS raw ON raw.run_id = reported.run AND raw.slot = reported.slot
WHERE raw.slot BETWEEN %b AND %b
"""
_KEPT = "SELECT run, sha256 FROM monitor_conflictingreport WHERE run = ANY (%b)"
_KEEP = """
INSERT INTO monitor_conflictingreport
    (run, series_id, slot, reporter, received_at, sha256, packing, packed)
SELECT * FROM unnest(%b::uuid[], %b::bigint[], %b::timestamptz[], %b::text[], %b::timestamptz[], %b::bytea[],
    %b::smallint[], %b::bytea[])
"""
_COUNT = """
INSERT INTO monitor_conflictcount AS counted (reporter, total, last_at)
SELECT reporter, number, %b FROM unnest(%b::text[], %b::bigint[]) AS conflict (reporter, number)
ORDER BY reporter
ON CONFLICT (reporter) DO UPDATE SET total = counted.total + EXCLUDED.total, last_at = EXCLUDED.last_at
"""


class IngestOutcome(Enum):
    """What became of a report.

    Attributes:
        NEW: the first report of its run; stored as the run's result.
        DUPLICATE: byte for byte the first report, as both were sent, or retention deleted the first report.
        CONFLICT: another report than the first; kept beside.
        NOT_KEPT: another report than the first, of a run with ``MOST_PER_RUN`` conflicting reports.
    """

    NEW = "new"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    NOT_KEPT = "not kept"


def compare(
    later: Sequence[tuple[uuid.UUID, MatchedReport]], first: Mapping[uuid.UUID, bytes]
) -> list[IngestOutcome]:
    """Compare reports of locked runs with the first report of the run; return the outcome of each, in order.

    *later* are pairs of the run in the ledger and the report. *first* has the first reports that this
    transaction stores; the depot has the others. A stored report that cannot be read counts as different.
    """
    if not later:
        return []
    stored = _stored_bodies({run: report.parsed.slot for run, report in later if run not in first})
    bodies: dict[uuid.UUID, bytes | None] = {**stored, **first}
    differing = [
        (run, report) for run, report in later if run in bodies and not _is_same(bodies[run], report.body)
    ]
    if not differing:
        return [IngestOutcome.DUPLICATE] * len(later)
    kept = _keep(differing)
    outcomes = {
        id(report): IngestOutcome.CONFLICT if is_kept else IngestOutcome.NOT_KEPT
        for (_, report), is_kept in zip(differing, kept, strict=True)
    }
    return [outcomes.get(id(report), IngestOutcome.DUPLICATE) for _, report in later]


def _is_same(first: bytes | None, later: bytes) -> bool:
    """Return whether both are the same report; short reports are the same if equal bodies were sent."""
    if first == later:
        return True
    return first is not None and bool(sent := sent_sha256(later)) and sent == sent_sha256(first)


def _stored_bodies(slots: Mapping[uuid.UUID, datetime]) -> dict[uuid.UUID, bytes | None]:
    """Return the stored report of each run (slots by run); None: unreadable; omit runs without a report."""
    if not slots:
        return {}
    times = list(slots.values())
    with binary.cursor() as cursor:
        cursor.execute(_BODIES, [list(slots), times, min(times), max(times)])
        return {run: stored_body(run, packing, packed) for run, packing, packed in cursor.fetchall()}


def stored_body(run: uuid.UUID, packing: int, packed: bytes) -> bytes | None:
    """Return the stored report of *run*; None, and an error in the log, if it is damaged."""
    try:
        return unpack(packing, bytes(packed))
    except ValueError as error:
        logger.error("the stored report of %s cannot be compared with another one: %s", run, error)
        return None


def _keep(differing: Sequence[tuple[uuid.UUID, MatchedReport]]) -> list[bool]:
    """Keep reports that differ from the first of their run; return, in order, whether each is kept."""
    kept = _kept_hashes({run for run, _ in differing})
    _count(Counter(report.parsed.reporter for _, report in differing))
    rows, is_kept = [], []
    now = timezone.now()
    for run, report in differing:
        sha256 = hashlib.sha256(report.body).digest()
        is_new = sha256 not in kept[run]
        is_kept.append(not is_new or len(kept[run]) < MOST_PER_RUN)
        if not is_new:
            continue
        parsed = report.parsed
        logger.warning(
            "conflict: the reporter %r sent another report of the run %s (%s at %s), SHA-256 %s; %s",
            parsed.reporter, run, parsed.series, rfc3339(parsed.slot), sha256.hex(),
            "it is kept beside the first" if is_kept[-1] else f"it is not kept, as {MOST_PER_RUN} others are",
        )  # fmt: skip
        if is_kept[-1]:
            kept[run].add(sha256)
            packed = pack(report.body)
            rows.append((run, report.series, parsed.slot, parsed.reporter, now, sha256, *packed))
    if rows:
        with binary.cursor() as cursor:
            cursor.execute(_KEEP, [list(column) for column in zip(*rows, strict=True)])
    return is_kept


def _count(conflicts: Mapping[str, int]) -> None:
    """Add *conflicts* to the counts of their reporters, in one order: concurrent calls do not deadlock."""
    reporters = sorted(conflicts)
    with binary.cursor() as cursor:
        cursor.execute(_COUNT, [timezone.now(), reporters, [conflicts[name] for name in reporters]])


def _kept_hashes(runs: Collection[uuid.UUID]) -> defaultdict[uuid.UUID, set[bytes]]:
    """Return the hashes of the conflicting reports that are kept, by run; their number is bounded."""
    kept: defaultdict[uuid.UUID, set[bytes]] = defaultdict(set)
    with binary.cursor() as cursor:
        for run, sha256 in cursor.execute(_KEPT, [list(runs)]):
            kept[run].add(bytes(sha256))
    return kept
