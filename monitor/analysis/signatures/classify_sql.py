"""The SQL of classification: failed runs with their reports in, keys of signatures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from monitor.analysis.outcomes import store_sql
from monitor.core.db import binary
from monitor.models.run import WITH_SIGNATURE

_STATES = ", ".join(f"'{state}'" for state in WITH_SIGNATURE)

# WITH TIES: all runs of the last slot belong to the batch, so that the next batch begins before it.
_FAILED = """
SELECT run.id, run.slot, run.series_id, run.state, run.stage, run.reason, report.packing, report.packed
FROM (
    SELECT id, slot, series_id, state, stage, reason FROM monitor_run
    WHERE state IN (STATES) AND CONDITION
    ORDER BY slot DESC FETCH FIRST %(at_most)b ROWS WITH TIES
) AS run
LEFT JOIN monitor_rawreport AS report ON report.run_id = run.id AND report.slot = run.slot
ORDER BY run.slot DESC
""".replace("STATES", _STATES)
_BY_ID = b"""
SELECT run.id, run.slot, run.series_id, run.state, run.stage, run.reason, report.packing, report.packed
FROM unnest(%(ids)b::uuid[], %(slots)b::timestamptz[]) AS wanted (id, slot)
JOIN monitor_run AS run ON run.id = wanted.id AND run.slot = wanted.slot
    AND run.slot BETWEEN %(first)b AND %(latest)b
LEFT JOIN monitor_rawreport AS report ON report.run_id = run.id AND report.slot = run.slot
"""
_UNCLASSIFIED = _FAILED.replace("CONDITION", "signature_id IS NULL").encode()
_BEFORE = _FAILED.replace("CONDITION", "slot < %(before)b").encode()

_WRITE = f"""
UPDATE monitor_run AS run SET signature_id = judged.signature
FROM unnest(%b::uuid[], %b::timestamptz[], %b::bigint[]) AS judged (run, slot, signature)
WHERE run.id = judged.run AND run.slot = judged.slot AND run.slot BETWEEN %b AND %b
    AND run.state IN ({_STATES}) AND run.signature_id IS DISTINCT FROM judged.signature
""".encode()  # noqa: S608 - constants from above


@dataclass(frozen=True)
class FailedRun:
    """A failed run; *packing* and *packed* are its report, None if the depot has none any more."""

    id: UUID
    slot: datetime
    series_id: int
    state: str
    stage: str
    reason: str
    packing: int | None
    packed: bytes | None


def unclassified(at_most: int) -> list[FailedRun]:
    """Return the newest failed runs without a signature."""
    return _fetch(_UNCLASSIFIED, {"at_most": at_most})


def before(slot: datetime, at_most: int) -> list[FailedRun]:
    """Return the newest failed runs with slots before *slot*."""
    return _fetch(_BEFORE, {"before": slot, "at_most": at_most})


def by_id(slots: Mapping[UUID, datetime]) -> list[FailedRun]:
    """Return the runs whose ids and slots are *slots*, as far as they still exist."""
    if not slots:
        return []
    parameters = {
        "ids": list(slots),
        "slots": list(slots.values()),
        "first": min(slots.values()),
        "latest": max(slots.values()),
    }
    return _fetch(_BY_ID, parameters)


def _fetch(statement: bytes, parameters: Mapping[str, object]) -> list[FailedRun]:
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(FailedRun)
        return cursor.execute(statement, parameters, binary=True).fetchall()


def write(runs: Sequence[FailedRun], signatures: Sequence[int]) -> int:
    """Store the key of the signature of each run; return how many changed."""
    if not runs:
        return 0
    slots = [run.slot for run in runs]
    with binary.cursor() as cursor:
        parameters = [[run.id for run in runs], slots, list(signatures), min(slots), max(slots)]
        changed = cursor.execute(_WRITE, parameters).rowcount
    if changed:
        store_sql.note_causes(slots)
    return changed
