"""Which runs of the ledger reports are of. Those that nobody expected are put into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monitor.db import binary
from monitor.models.run import REPORTED

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from monitor.ingest.fast_parser import ParsedReport
    from monitor.models.series import SeriesQuerySet

# Whoever knows between which slots looks at those parts of the ledger alone.
_LOOK = """
SELECT said.run, coalesce(run.series_id, series.id), run.id IS NOT NULL
FROM unnest(%b::uuid[], %b::timestamptz[], %b::text[]) AS said (run, slot, name)
LEFT JOIN monitor_run AS run ON run.id = said.run AND run.slot = said.slot AND run.slot BETWEEN %b AND %b
LEFT JOIN monitor_series AS series ON run.id IS NULL AND series.name = said.name
WHERE run.id IS NOT NULL OR series.id IS NOT NULL
"""
_LIST = """
INSERT INTO monitor_run
    (id, series_id, slot, due_at, trigger, forced, state, reason, cause, attempt, stage, failed_resource)
SELECT run, series, slot, slot, trigger, false, 'expected', '', '', 0, '', ''
FROM unnest(%b::uuid[], %b::bigint[], %b::timestamptz[], %b::text[]) AS said (run, series, slot, trigger)
ORDER BY series, slot
ON CONFLICT DO NOTHING
RETURNING id
"""
_LISTED_AS = """
SELECT said.run, run.id FROM unnest(%b::uuid[], %b::bigint[], %b::timestamptz[]) AS said (run, series, slot)
JOIN monitor_run AS run ON run.series_id = said.series AND run.slot = said.slot
"""
_LOCK = """
SELECT run.id, run.state FROM unnest(%b::uuid[], %b::timestamptz[]) AS said (run, slot)
JOIN monitor_run AS run ON run.id = said.run AND run.slot = said.slot AND run.slot BETWEEN %b AND %b
ORDER BY run.id FOR NO KEY UPDATE OF run
"""
# What is so old that reports are not kept had its report, too.
_REPORTED = """
WITH said AS (SELECT * FROM unnest(%b::uuid[], %b::timestamptz[]) AS said (run, slot))
SELECT run_id FROM said
JOIN monitor_rawreport AS raw ON raw.run_id = said.run AND raw.slot = said.slot
UNION
SELECT run.id FROM said JOIN monitor_run AS run ON run.id = said.run AND run.slot = said.slot
JOIN monitor_retentioncutoff AS horizon ON horizon.series_id = run.series_id AND kind = 'reports'
WHERE run.slot < kept_from
"""


class Gone(Exception):
    """What was looked for has been taken away meanwhile."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run belongs: the key of its series, and whether the ledger has it."""

    series: int
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Incoming:
    """A report whose series is known, and the *body* that it was read from. *trigger* is that of a run which
    nobody expected."""

    place: Place
    report: ParsedReport
    body: bytes
    trigger: str = "reporter"

    @property
    def series(self) -> int:
        return self.place.series

    @property
    def at(self) -> tuple[int, datetime]:
        """The key of its series, and its slot."""
        return self.place.series, self.report.slot


@dataclass(frozen=True, slots=True)
class Locked:
    """A run, by its key in the ledger, which nobody else may change until the end of the transaction."""

    run: uuid.UUID
    is_reported: bool


def look(reports: Iterable[ParsedReport], visible: SeriesQuerySet | None) -> dict[uuid.UUID, Place]:
    """By run, where it belongs; without those of no series, or of none that is *visible*.

    A series may have got another name since its run was put into the ledger.
    """
    said = {report.run: report for report in reports}
    if not said:
        return {}
    slots = [report.slot for report in said.values()]
    names = [report.series for report in said.values()]
    with binary.cursor() as cursor:
        cursor.execute(_LOOK, [list(said), slots, names, min(slots), max(slots)])
        found = {run: Place(series, is_listed) for run, series, is_listed in cursor.fetchall()}
    if visible is None or not found:
        return found
    seen = set(visible.filter(pk__in={place.series for place in found.values()}).values_list("pk", flat=True))
    return {run: place for run, place in found.items() if place.series in seen}


def locked(incoming: Sequence[Incoming]) -> list[Locked]:
    """The run of each. To be called in a transaction.

    Several may do so at once: rows are made, and locked, in the order of their keys, and none is made by who
    has locked any.

    Raises:
        Gone: one was there when it was looked for, and is not any more: look again.
    """
    wanted = {one.report.run: one for one in incoming}
    strangers = {run: one for run, one in wanted.items() if not one.place.is_listed}
    made = _list(strangers)
    if len(made) == len(wanted):
        return [Locked(one.report.run, is_reported=False) for one in incoming]
    listed_as = _listed_as({run: one for run, one in strangers.items() if run not in made})
    slots = {listed_as.get(run, run): one.report.slot for run, one in wanted.items()}
    is_reported = _lock(slots)
    if len(is_reported) < len(slots):
        raise Gone(f"{len(slots) - len(is_reported)} runs were taken from the ledger meanwhile")
    runs = [listed_as.get(one.report.run, one.report.run) for one in incoming]
    return [Locked(run, is_reported[run]) for run in runs]


def _list(strangers: Mapping[uuid.UUID, Incoming]) -> set[uuid.UUID]:
    """Put them into the ledger, which did not expect them; those that are there now and were not."""
    if not strangers:
        return set()
    with binary.cursor() as cursor:
        cursor.execute(_LIST, [*_columns(strangers), [one.trigger for one in strangers.values()]])
        return {run for (run,) in cursor.fetchall()}


def _listed_as(others: Mapping[uuid.UUID, Incoming]) -> dict[uuid.UUID, uuid.UUID]:
    """The keys of runs that could not be made, for there is one of their series and slot.

    It is another one where the series was renamed after the slot had been listed.
    """
    if not others:
        return {}
    with binary.cursor() as cursor:
        cursor.execute(_LISTED_AS, _columns(others))
        return dict(cursor.fetchall())


def _columns(runs: Mapping[uuid.UUID, Incoming]) -> list[list[Any]]:
    return [
        list(runs),
        [one.series for one in runs.values()],
        [one.report.slot for one in runs.values()],
    ]


def _lock(slots: Mapping[uuid.UUID, datetime]) -> dict[uuid.UUID, bool]:
    """Lock runs, of these slots; of each that is there, whether there is a report of it."""
    with binary.cursor() as cursor:
        times = list(slots.values())
        cursor.execute(_LOCK, [list(slots), times, min(times), max(times)])
        states = dict(cursor.fetchall())
        reported = set()
        if ended := [run for run, state in states.items() if state in REPORTED]:
            # Asked when they are locked, and not before: who had them until then may have written just that.
            cursor.execute(_REPORTED, [ended, [slots[run] for run in ended]])
            reported = {run for (run,) in cursor.fetchall()}
        return {run: run in reported for run in states}
