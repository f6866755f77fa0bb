"""Choose the slots of runs that are reported from outside without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from monitor.db import binary
from monitor.ingest.conflicts import stored_body
from monitor.ingest.short_reports import sent_sha256
from monitor.models.run import IN_FLIGHT, REPORTED, SCHEDULE, State

LATE = timedelta(days=1)
EARLY = timedelta(minutes=1)  # a run that starts so little before a slot is the run of this slot
_STARTS = """
SELECT start.series_id, start.rid, slot, started_at FROM monitor_reportedstart AS start
JOIN unnest(%b::bigint[], %b::text[]) AS wanted (series, rid)
    ON (start.series_id, start.rid) = (wanted.series, wanted.rid)
"""
_NAME = """
INSERT INTO monitor_reportedstart (series_id, rid, slot, received_at)
SELECT series, rid, slot, %b
FROM unnest(%b::bigint[], %b::text[], %b::timestamptz[]) AS named (series, rid, slot)
ORDER BY series, rid
ON CONFLICT DO NOTHING
"""
# The slots of the schedule around a time, of the last year and the next day: the ledger has no later ones.
_AROUND = """
SELECT before.slot, after.slot
FROM unnest(%b::bigint[], %b::timestamptz[]) WITH ORDINALITY AS wanted (series, time, number)
LEFT JOIN LATERAL (SELECT slot FROM monitor_run WHERE series_id = wanted.series AND trigger = %b
    AND slot > wanted.time - interval '366 days' AND slot <= wanted.time ORDER BY slot DESC LIMIT 1) AS before
    ON true
LEFT JOIN LATERAL (SELECT slot FROM monitor_run WHERE series_id = wanted.series AND trigger = %b
    AND slot > wanted.time AND slot <= wanted.time + interval '1 day' ORDER BY slot LIMIT 1) AS after ON true
ORDER BY number
"""
_STATES = """
SELECT run.series_id, run.slot, run.id, run.state, raw.packing, raw.packed
FROM unnest(%b::bigint[], %b::timestamptz[]) AS wanted (series, slot)
JOIN monitor_run AS run ON run.series_id = wanted.series AND run.slot = wanted.slot
    AND run.slot BETWEEN %b AND %b
LEFT JOIN monitor_rawreport AS raw ON raw.run_id = run.id AND raw.slot = run.slot
    AND raw.slot BETWEEN %b AND %b
"""
_Slot = tuple[int, datetime]  # the key of a series, and a slot


class ReportedRun(NamedTuple):
    """A run without a slot: when it started, the sender's id, and the SHA-256 of its report ("": none)."""

    series: int
    at: datetime
    rid: str
    sha256: str


class ChosenSlot(NamedTuple):
    """The slot of a run, and the time at which its start was announced; None: it was not."""

    slot: datetime
    announced_at: datetime | None = None


class SlotState(NamedTuple):
    """The state of a run in the ledger, and the SHA-256 of the short report that is stored."""

    state: str
    sha256: str


def choose(runs: Sequence[ReportedRun], now: datetime) -> list[ChosenSlot]:
    """Return the slot of each of *runs*, which have ended, in order.

    A run with an id has the slot of the start, or of the report, that named the id first. Without an id it is
    the run that announced its start last, if that has not ended. Else it is the run of the schedule's slot at
    its start, unless this slot has another report or another run: then, and without a schedule, it is an
    additional run with the time of its start as its slot. An equal report has the slot of the first one.
    """
    starts = find_starts([(run.series, rid) for run in runs for rid in {run.rid, ""}])
    nearest = nearest_slots([(run.series, run.at) for run in runs])
    last = [(series, start.slot) for (series, rid), start in starts.items() if not rid]
    scheduled = [(run.series, slot) for run, slot in zip(runs, nearest, strict=True) if slot is not None]
    states = slot_states([*last, *scheduled])
    chosen, taken = [], dict[_Slot, str]()
    for run, slot in zip(runs, nearest, strict=True):
        choice = _choose(run, slot, starts, states, taken)
        taken[run.series, choice.slot] = run.sha256
        chosen.append(choice)
    return _named(runs, chosen, starts, now)


def _choose(
    run: ReportedRun,
    scheduled: datetime | None,
    starts: Mapping[tuple[int, str], ChosenSlot],
    states: Mapping[_Slot, SlotState],
    taken: Mapping[_Slot, str],
) -> ChosenSlot:
    start = starts.get((run.series, run.rid))
    if run.rid and start is not None:
        return start
    if start is not None and (run.series, start.slot) not in taken:
        state = states.get((run.series, start.slot))
        if state is not None and _has_not_ended(start, state.state, scheduled, run.at):
            return start
    if scheduled is None:
        return ChosenSlot(run.at)
    key = run.series, scheduled
    stored = states.get(key)
    if key in taken:
        is_open = taken[key] == run.sha256
    else:
        is_busy = stored is not None and stored.state in (*IN_FLIGHT, *REPORTED)
        is_open = not is_busy or (stored is not None and stored.sha256 == run.sha256)
    return ChosenSlot(scheduled if is_open else run.at)


def _has_not_ended(start: ChosenSlot, state: str, scheduled: datetime | None, at: datetime) -> bool:
    """Return whether a run that starts no later than *at* is the one that announced its *start*.

    A run that was lost may still end, but not in a later slot, nor a day later: that is another run.
    """
    if state in REPORTED:
        return False
    if state == State.RUNNING:
        return True
    is_recent = start.announced_at is not None and at - start.announced_at <= LATE
    return start.slot == scheduled if scheduled is not None else is_recent


def _named(
    runs: Sequence[ReportedRun],
    chosen: Sequence[ChosenSlot],
    starts: Mapping[tuple[int, str], ChosenSlot],
    now: datetime,
) -> list[ChosenSlot]:
    """Record the slots of ids that were not known, so that the same report again has the same slot.

    The slot that a concurrent request has recorded first wins.
    """
    new = {
        (run.series, run.rid): choice.slot
        for run, choice in zip(runs, chosen, strict=True)
        if run.rid and (run.series, run.rid) not in starts
    }
    if not new:
        return list(chosen)
    series, rids = zip(*new, strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_NAME, [now, list(series), list(rids), list(new.values())])
    recorded = find_starts(new)
    return [
        recorded.get((run.series, run.rid), choice) if run.rid else choice
        for run, choice in zip(runs, chosen, strict=True)
    ]


def find_starts(
    wanted: Sequence[tuple[int, str]] | Mapping[tuple[int, str], object],
) -> dict[tuple[int, str], ChosenSlot]:
    """Return the runs that were named or announced, by (series key, id); the id "" is the last start."""
    if not wanted:
        return {}
    series, rids = zip(*set(wanted), strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_STARTS, [list(series), list(rids)])
        return {(key, rid): ChosenSlot(slot, at) for key, rid, slot, at in cursor.fetchall()}


def nearest_slots(times: Sequence[tuple[int, datetime]]) -> list[datetime | None]:
    """Return, for each pair of a series and a start time, the schedule's slot; None: there is none near.

    It is the last slot before the start. Clocks differ: a run that starts up to ``EARLY``, but at most a
    quarter of the period, before a slot is the run of this slot.
    """
    if not times:
        return []
    series, starts = zip(*times, strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_AROUND, [list(series), list(starts), SCHEDULE, SCHEDULE])
        return [
            _nearest(time, before, after)
            for time, (before, after) in zip(starts, cursor.fetchall(), strict=True)
        ]


def _nearest(time: datetime, before: datetime | None, after: datetime | None) -> datetime | None:
    if after is None:
        return before
    early = EARLY if before is None else min(EARLY, (after - before) / 4)
    return after if after - time <= early else before


def slot_states(slots: Sequence[_Slot]) -> dict[_Slot, SlotState]:
    """Return the state of the runs of *slots* that the ledger has."""
    if not slots:
        return {}
    series, times = zip(*set(slots), strict=True)
    bounds = [min(times), max(times)]
    with binary.cursor() as cursor:
        cursor.execute(_STATES, [list(series), list(times), *bounds, *bounds])
        rows = cursor.fetchall()
    states = {}
    for key, slot, run, state, packing, packed in rows:
        body = None if packed is None else stored_body(run, packing, packed)
        states[key, slot] = SlotState(state, sent_sha256(body) if body else "")
    return states
