"""Move runs from state to state.

Only ``worker.start_runs`` has a statement of its own: it moves claimed runs to ``running``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import transaction

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays
from monitor.depot.rollups import mark_dirty
from monitor.models.run import ENDED, REPORTED, State

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from monitor.models.run import RunQuerySet

# A late report corrects "missed" and "lost"; a report is never overwritten. A trigger of the database has the
# same table and refuses every other transition.
ALLOWED: dict[str, tuple[str, ...]] = {
    State.EXPECTED: (State.CLAIMED, State.SKIPPED, State.MISSED, *REPORTED),
    State.CLAIMED: (State.RUNNING, State.EXPECTED, State.LOST, *REPORTED),
    State.RUNNING: (State.EXPECTED, State.LOST, *REPORTED),
    State.MISSED: REPORTED,
    State.LOST: REPORTED,
}


class ReportedEnd(NamedTuple):
    """The end of a run according to its report."""

    run: uuid.UUID
    slot: datetime
    state: str
    cause: str
    reason: str
    stage: str
    failed_resource: str
    started_at: datetime | None
    ended_at: datetime | None


class UnlistedEnd(NamedTuple):
    """The end of a run that the ledger may lack; *series* is the key of its series."""

    series: int
    trigger: str
    end: ReportedEnd


class LockedMove(NamedTuple):
    """A transition of a run that the transaction has locked; *series* is the key of its series."""

    run: uuid.UUID
    slot: datetime
    series: int
    source: str
    target: str
    cause: str
    reason: str


_ENDED_COLUMNS = ", ".join(ReportedEnd._fields)
_ENDED_TYPES = ("uuid", "timestamptz", *5 * ("text",), "timestamptz", "timestamptz")
_ENDED, _UNLISTED = Arrays(*_ENDED_TYPES), Arrays("int8", "text", *_ENDED_TYPES)
# Few runs of the ledger have not ended. From the statistics of ``state`` the planner would expect one row and
# choose a nested loop over all endings. It cannot estimate (state || ''), expects more rows, and hashes.
_END = f"""
UPDATE monitor_run AS run
SET state = ended.state, cause = ended.cause, reason = ended.reason, stage = ended.stage,
    failed_resource = ended.failed_resource, started_at = ended.started_at, ended_at = ended.ended_at
FROM unnest({_ENDED.placeholders}) AS ended ({_ENDED_COLUMNS})
WHERE run.id = ended.run AND run.slot = ended.slot AND run.slot BETWEEN %b AND %b
    AND run.state || '' = ANY (%b)
"""  # noqa: S608  # constants
# A run that is inserted as it ended is written once instead of twice. Of several rows of one slot, the first
# is inserted. The triggers of an insert do what those of an update do, but do not record the transition.
_INSERT_ENDED = f"""
WITH inserted AS (
    INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, forced, attempt, state, cause, reason,
        stage, failed_resource, started_at, ended_at)
    SELECT run, series, slot, slot, trigger, false, 0, state, cause, reason,
        stage, failed_resource, started_at, ended_at
    FROM unnest({_UNLISTED.placeholders}) WITH ORDINALITY
        AS ended (series, trigger, {_ENDED_COLUMNS}, number)
    ORDER BY series, slot, number
    ON CONFLICT DO NOTHING
    RETURNING id, state, cause
), recorded AS (
    INSERT INTO monitor_transition (run_id, source, target, at, cause)
    SELECT id, 'expected', state, clock_timestamp(), cause FROM inserted
)
SELECT id FROM inserted
"""  # noqa: S608  # constants
_MOVE_LOCKED = """
UPDATE monitor_run AS run SET state = moved.target, cause = moved.cause, reason = moved.reason
FROM unnest(%b::uuid[], %b::timestamptz[], %b::text[], %b::text[], %b::text[], %b::text[])
    AS moved (run, slot, source, target, cause, reason)
WHERE run.id = moved.run AND run.slot = moved.slot AND run.slot BETWEEN %b AND %b
    AND run.state = moved.source
"""


def move(
    runs: RunQuerySet,
    ids: Iterable[uuid.UUID],
    to: State,
    *,
    cause: str,
    slots: Collection[datetime] | None = None,
    **fields: Any,
) -> int:
    """Move the runs with these *ids* among *runs* to the state *to*, where the transition is allowed.

    Return the number of moved runs. All runs move in one statement, so the second of two concurrent callers
    moves nothing. With *slots* the statement reads only the partitions that contain these slots. The database
    records *cause* in the run's transitions. *fields* are further columns to set.
    """
    keys = list(ids)
    sources = [state for state, targets in ALLOWED.items() if to in targets]
    with transaction.atomic(savepoint=False):  # the end of a run and its dirty hour are one change
        selected = runs if slots is None else runs.filter(slot__in=slots)
        moved = selected.filter(id__in=keys, state__in=sources).update(state=to, cause=cause, **fields)
        if moved and to in ENDED:
            mark_dirty.mark_runs(keys, slots)
    return moved


def move_locked(moves: Sequence[LockedMove]) -> None:
    """Move runs that this transaction has locked, thousands in one statement; the database refuses a
    transition that is not allowed."""
    if not moves:
        return
    runs, slots, _, *columns = (list(column) for column in zip(*moves, strict=True))
    with binary.cursor() as cursor:
        cursor.execute(_MOVE_LOCKED, [runs, slots, *columns, min(slots), max(slots)])
    ended = {(move.series, move.slot) for move in moves if move.target in ENDED}
    if ended:
        mark_dirty.mark(ended)


def insert_reported(endings: Sequence[UnlistedEnd]) -> set[uuid.UUID]:
    """Insert each run that the ledger lacks, ended as its report says; return the ids of the inserted runs.

    Runs are inserted in one order, by series and slot. A run that a concurrent transaction has inserted first
    is not returned.
    """
    if not endings:
        return set()
    columns: list[list[Any]] = [[end.series for end in endings], [end.trigger for end in endings]]
    columns += [list(column) for column in zip(*(ending.end for ending in endings), strict=True)]
    with binary.cursor() as cursor:
        cursor.execute(_INSERT_ENDED, _UNLISTED.pack(columns))
        return {run for (run,) in cursor.fetchall()}


def end_reported(endings: Sequence[ReportedEnd]) -> None:
    """End each run as its report says, where the transition is allowed; one statement ends all runs."""
    if not endings:
        return
    columns = [list(column) for column in zip(*endings, strict=True)]
    slots = [ending.slot for ending in endings]
    sources = [state for state, targets in ALLOWED.items() if set(REPORTED) <= set(targets)]
    with binary.cursor() as cursor:
        cursor.execute(_END, [*_ENDED.pack(columns), min(slots), max(slots), sources])
