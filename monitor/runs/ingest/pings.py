"""Pings: starts and ends of runs that a program outside of gridcast reports without a report."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_each_until_commit
from monitor.models import ReportedStart, Run, Series
from monitor.models.run import REPORTED, State
from monitor.runs.ingest.choose_slots import find_owners, find_starts, nearest_slots, slot_states
from monitor.runs.ledger import outside_runs
from monitor.runs.ledger.free_slots import FreeSlots
from reporters.fields import clean_text
from reporters.report import run_id
from reporters.truncate import clip

if TYPE_CHECKING:
    import uuid

MOST_LOG_CHARACTERS = 64 * 1024
KEEP_STARTS = timedelta(days=31)  # for that long the same report with the same id is a duplicate
_TAIL_CHARACTERS = 4_000
_REASON_CHARACTERS = 300


class PingedRun(NamedTuple):
    """The run that a ping started; *is_known*: an earlier ping with its id has started or ended it."""

    run: uuid.UUID
    slot: datetime
    state: str
    is_known: bool = False


@transaction.atomic
def start_run(series: Series, rid: str, now: datetime) -> PingedRun:
    """Record that a run of *series* has started at *now*; *rid* is the caller's id of the run, or "".

    It is the run of the schedule's slot, if this has no report, no other run and no other id; else an
    additional run with a slot of its own.
    With an id that is known nothing changes. Without an id, a second start in the same slot replaces the
    first: the run then began at *now*.
    """
    lock_each_until_commit(AdvisoryLock.SLOTS, [series.pk])
    start = find_starts([(series.pk, rid)]).get((series.pk, rid))
    if rid and start is not None:
        return _pinged(series, start.slot, is_known=True)
    slot = _slot_of_start(series, now, start.slot if start else None)
    fields = {"slot": slot, "started_at": now, "received_at": now}
    ReportedStart.objects.update_or_create(series=series, rid=rid, defaults=fields)
    run = Run(id=run_id(series.name, slot), series=series, slot=slot, due_at=slot, trigger="reporter")
    Run.objects.bulk_create([run], ignore_conflicts=True)
    outside_runs.start(series, slot, now)
    return _pinged(series, slot)


def _slot_of_start(series: Series, now: datetime, last: datetime | None) -> datetime:
    """Return the slot of a run that starts at *now*; *last* is the slot of the last start without an id."""
    (slot,) = nearest_slots([(series.pk, now)])
    if slot is not None:
        key = series.pk, slot
        state = slot_states([key]).get(key)
        is_reported = state is not None and state.state in REPORTED
        owners = find_owners([key]).get(key, set())
        is_taken = is_reported or bool(owners) or (state is not None and state.state == State.RUNNING)
        is_restart = slot == last and not is_reported and owners <= {""}
        if is_restart or not is_taken:
            return slot
    return FreeSlots([(series.pk, now)]).next(series.pk, now)


def _pinged(series: Series, slot: datetime, *, is_known: bool = False) -> PingedRun:
    """Return the run of *series* at *slot*; its id differs from the derived one if the series was renamed."""
    row = Run.objects.filter(series=series, slot=slot).values_list("pk", "state").first()
    run, state = row or (run_id(series.name, slot), State.EXPECTED)
    return PingedRun(run, slot, state, is_known)


def end_report(series: str, signal: str, rid: str, text: str) -> bytes:
    """Return the short report of a run of *series* that a ping has ended.

    *signal* is "" for success, ``fail``, or an exit status; *text* is the end of the program's output. Equal
    pings have equal reports.
    """
    text = clean_text(text)
    report: dict[str, Any] = {"series": series, "outcome": "failed" if _is_failure(signal) else "passed"}
    if rid:
        report["rid"] = rid
    if text:
        report["log"] = clip(text, MOST_LOG_CHARACTERS)
    if _is_failure(signal):
        report["failure"] = _failure(signal, text)
    return json.dumps(report, ensure_ascii=False, separators=(",", ":")).encode()


def _is_failure(signal: str) -> bool:
    return signal not in ("", "0")


def _failure(signal: str, text: str) -> dict[str, Any]:
    """Return the failure; its message ends with the last line of *text*, where programs name the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = clip(lines[-1], _REASON_CHARACTERS) if lines else ""
    status = int(signal) if signal.isdecimal() else None
    what = "reported as failed" if status is None else f"exit status {status}"
    message = f"{what}: {last}" if last else what
    return {"message": message, "exit_status": status, "stderr_tail": text[-_TAIL_CHARACTERS:]}


def prune_starts(now: datetime) -> int:
    """Delete the slots of ids that were received more than ``KEEP_STARTS`` ago; return their number."""
    old = ReportedStart.objects.filter(received_at__lt=now - KEEP_STARTS).exclude(rid="")
    return old.delete()[0]
