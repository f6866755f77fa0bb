"""Choose the slots of runs that are reported from outside without one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from monitor.core.db import binary
from monitor.core.db.advisory_locks import AdvisoryLock, lock_each_until_commit
from monitor.models.run import IN_FLIGHT, REPORTED, SCHEDULE, State
from monitor.runs.ingest.conflicts import stored_body
from monitor.runs.ingest.short_reports import sent_sha256
from monitor.runs.ledger.free_slots import FreeSlots

LATE = timedelta(days=1)
EARLY = timedelta(minutes=1)  # a run that starts so little before a slot is the run of this slot
_STARTS = """
SELECT start.series_id, start.rid, slot, started_at FROM monitor_reportedstart AS start
JOIN unnest(%b::bigint[], %b::text[]) AS wanted (series, rid)
    ON (start.series_id, start.rid) = (wanted.series, wanted.rid)
"""
_OWNERS = """
SELECT start.series_id, start.slot, start.rid FROM monitor_reportedstart AS start
JOIN unnest(%b::bigint[], %b::timestamptz[]) AS wanted (series, slot)
    ON (start.series_id, start.slot) = (wanted.series, wanted.slot)
"""
_NAME = """
INSERT INTO monitor_reportedstart (series_id, rid, slot, received_at)
SELECT series, rid, slot, %b
FROM unnest(%b::bigint[], %b::text[], %b::timestamptz[]) AS named (series, rid, slot)
ORDER BY series, rid
"""
# The slots of the schedule around a time, of the last year and the next day: the ledger has no later ones. A
# series without a schedule is not searched: all its runs of a year would be read.
_AROUND = """
SELECT before.slot, after.slot
FROM unnest(%b::bigint[], %b::timestamptz[]) WITH ORDINALITY AS wanted (series, time, number)
LEFT JOIN monitor_series AS its
    ON its.id = wanted.series AND (its.schedule <> '' OR its.leader_id IS NOT NULL)
LEFT JOIN LATERAL (SELECT slot FROM monitor_run WHERE series_id = its.id AND trigger = %b
    AND slot > wanted.time - interval '366 days' AND slot <= wanted.time ORDER BY slot DESC LIMIT 1) AS before
    ON true
LEFT JOIN LATERAL (SELECT slot FROM monitor_run WHERE series_id = its.id AND trigger = %b
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
_Name = tuple[int, str]  # the key of a series, and an id


class ReportedRun(NamedTuple):
    """A run that is reported from outside.

    Attributes:
        at: when it started.
        is_dated: the sender says when; else *at* is the time of arrival, less the duration.
        rid: the sender's id; "": none.
        sha256: of its report; "": of another one than any.
    """

    series: int
    at: datetime
    is_dated: bool
    rid: str
    sha256: str

    @property
    def name(self) -> str:
        """Return what the run is known by when it is reported again; "": nothing.

        The content of a report names its run if the report says when it was. No sender's id has a space.
        """
        return self.rid or (f"sha256 {self.sha256}" if self.is_dated else "")


class ChosenSlot(NamedTuple):
    """The slot of a run.

    Attributes:
        announced_at: the time at which its start was announced; None: it was not.
        is_named: the run had this slot before, by its id: another report of it is a conflict.
    """

    slot: datetime
    announced_at: datetime | None = None
    is_named: bool = False


class KnownSlot(NamedTuple):
    """The state of a run in the ledger, and the SHA-256 of the short report that is stored.

    "": the report was no short one; None: there is no report.
    """

    state: str
    sha256: str | None


class SlotChooser:
    """Chooses the slots of runs of a batch, one after another, until the transaction ends.

    A run with an id has the slot of the start, or of the report, that named the id first. Without an id it is
    the run that announced its start last, if that has not ended. Else it is the run of the schedule's slot at
    its start, unless this slot has another report, another run or another id: then, and without a schedule,
    it is an additional run with the first free microsecond from its start on as its slot. An equal report has
    the slot of the first one, if it says when its run was, or has a slot of the schedule.

    Other transactions that choose slots of these series wait for the end of this one: which slot is free, and
    whose it is from now on, is one decision.
    """

    def __init__(self, runs: Collection[ReportedRun], named: Collection[_Slot]) -> None:
        """Lock the series of *runs* and of the slots *named* by reports, and read their slots."""
        lock_each_until_commit(AdvisoryLock.SLOTS, {run.series for run in runs} | {key for key, _ in named})
        self._starts = find_starts({(run.series, name) for run in runs for name in (run.name, run.rid, "")})
        times = list({(run.series, run.at) for run in runs})
        self._scheduled = dict(zip(times, nearest_slots(times), strict=True))
        scheduled = [(series, slot) for (series, _), slot in self._scheduled.items() if slot is not None]
        last = [(series, start.slot) for (series, name), start in self._starts.items() if not name]
        dated = [(run.series, run.at) for run in runs if run.is_dated]
        self._states = slot_states([*last, *scheduled, *dated])
        self._owners = find_owners([*scheduled, *named])
        self._free = FreeSlots(times)
        self._taken: dict[_Slot, str] = {}

    def choose(self, run: ReportedRun) -> ChosenSlot:
        """Return the slot of *run*, which has ended; it stays free until ``take``."""
        known = self._starts.get((run.series, run.name)) if run.name else None
        if known is not None:
            return known._replace(is_named=True)
        scheduled = self._scheduled[run.series, run.at]
        start = None if run.rid else self._starts.get((run.series, ""))
        if start is not None and (run.series, start.slot) not in self._taken:
            state = self._states.get((run.series, start.slot))
            if state is not None and _has_not_ended(start, state.state, scheduled, run.at):
                return start
        if scheduled is not None and self._is_open(run, scheduled):
            return ChosenSlot(scheduled)
        if self._is_stored(run):
            return ChosenSlot(run.at)
        return ChosenSlot(self._free.next(run.series, run.at))

    def _is_stored(self, run: ReportedRun) -> bool:
        """Return whether the report of the slot at the start of *run* is the same one.

        If retention has deleted it, reports without an id are compared by that time.
        """
        stored = self._states.get((run.series, run.at))
        if not run.is_dated or stored is None or stored.state not in REPORTED:
            return False
        return not run.rid if stored.sha256 is None else stored.sha256 == run.sha256

    def _is_open(self, run: ReportedRun, slot: datetime) -> bool:
        """Return whether the schedule's *slot* is the one of *run*."""
        key = run.series, slot
        if key in self._taken:
            return self._taken[key] == run.sha256
        stored = self._states.get(key)
        if stored is not None and stored.state in REPORTED:
            return stored.sha256 == run.sha256
        is_in_flight = stored is not None and stored.state in IN_FLIGHT
        return not is_in_flight and self._owners.get(key, set()) <= {run.name}

    def other_owner(self, run: ReportedRun, slot: datetime) -> str:
        """Return the other id whose slot is the *slot* that the report of *run* names; "": there is none."""
        if not run.rid or (run.series, run.rid) in self._starts:
            return ""
        owners = self._owners.get((run.series, slot), set())
        return min((name for name in owners if name and " " not in name), default="")

    def take(self, run: ReportedRun, slot: datetime) -> None:
        """Give *slot* to *run*: other runs of the batch, and other reports of the same run, respect it."""
        self._taken[run.series, slot] = run.sha256
        self._free.take(run.series, slot)
        if run.name:
            self._owners.setdefault((run.series, slot), set()).add(run.name)
            self._starts.setdefault((run.series, run.name), ChosenSlot(slot))

    def new_name(self, run: ReportedRun, slot: datetime) -> _Name | None:
        """Return the name of *run* to record with its *slot*; None: it is recorded, or its slot suffices."""
        is_found = not run.rid and slot in (run.at, self._scheduled.get((run.series, run.at)))
        if not run.name or is_found or (run.series, run.name) in self._starts:
            return None
        return run.series, run.name


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


def record_names(names: Mapping[_Name, datetime], now: datetime) -> None:
    """Record the slots of ids that are new, so that the same run reported again has the same slot."""
    if not names:
        return
    series, rids = zip(*names, strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_NAME, [now, list(series), list(rids), list(names.values())])


def find_starts(wanted: Iterable[_Name]) -> dict[_Name, ChosenSlot]:
    """Return the runs that were named or announced, by (series key, id); the id "" is the last start."""
    if not (names := set(wanted)):
        return {}
    series, rids = zip(*names, strict=True)
    with binary.cursor() as cursor:
        cursor.execute(_STARTS, [list(series), list(rids)])
        return {(key, rid): ChosenSlot(slot, at) for key, rid, slot, at in cursor.fetchall()}


def find_owners(slots: Iterable[_Slot]) -> dict[_Slot, set[str]]:
    """Return the ids whose slots are among *slots*; the id "" is the last start."""
    if not (wanted := set(slots)):
        return {}
    series, times = zip(*wanted, strict=True)
    owners: dict[_Slot, set[str]] = {}
    with binary.cursor() as cursor:
        cursor.execute(_OWNERS, [list(series), list(times)])
        for key, slot, rid in cursor.fetchall():
            owners.setdefault((key, slot), set()).add(rid)
    return owners


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


def slot_states(slots: Sequence[_Slot]) -> dict[_Slot, KnownSlot]:
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
        sha256 = None if packed is None else sent_sha256(body) if body else ""
        states[key, slot] = KnownSlot(state, sha256)
    return states
