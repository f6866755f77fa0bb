"""Match reports with runs of the ledger, insert runs that the ledger lacks, and lock the matched runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from monitor.core.db import binary
from monitor.core.db.array_parameters import Arrays
from monitor.models.run import REPORTED
from monitor.runs.ingest.reported_end import reported_end
from monitor.runs.ledger.transitions import UnlistedEnd, insert_reported

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from monitor.models.series import SeriesQuerySet
    from monitor.runs.ingest.fast_parser import ParsedReport
    from monitor.runs.ingest.submission import Submission

_REPORTED = Arrays("uuid", "timestamptz", "text", "text")
_LOCKED = Arrays("uuid", "timestamptz")
# The bounds of the slots prune the partitions of the ledger, here and below. Rows are read by position: these
# statements run for every report.
_FIND = f"""
SELECT number, series.id, run.id IS NOT NULL, sender IS NULL OR sender = reporter.name OR EXISTS (
    SELECT FROM monitor_formerreporter AS former JOIN monitor_reporter AS its ON its.id = former.reporter_id
    WHERE former.series_id = series.id AND its.name = sender AND reported.slot <= former.until)
FROM unnest({_REPORTED.placeholders}) WITH ORDINALITY
    AS reported (run, slot, name, sender, number)
LEFT JOIN monitor_run AS run
    ON run.id = reported.run AND run.slot = reported.slot AND run.slot BETWEEN %b AND %b
LEFT JOIN monitor_series AS named ON run.id IS NULL AND named.name = reported.name
JOIN monitor_series AS series ON series.id = coalesce(run.series_id, named.id)
JOIN monitor_reporter AS reporter ON reporter.id = series.reporter_id
"""  # noqa: S608  # constants
_FIND_BY_SLOT = """
SELECT reported.run, run.id
FROM unnest(%b::uuid[], %b::bigint[], %b::timestamptz[]) AS reported (run, series, slot)
JOIN monitor_run AS run ON run.series_id = reported.series AND run.slot = reported.slot
"""
_LOCK = f"""
SELECT run.id, run.state FROM unnest({_LOCKED.placeholders}) AS reported (run, slot)
JOIN monitor_run AS run
    ON run.id = reported.run AND run.slot = reported.slot AND run.slot BETWEEN %b AND %b
ORDER BY run.id FOR NO KEY UPDATE OF run
"""  # noqa: S608  # constants
# A run older than its series' reports are kept has ended by a report that was deleted or never stored.
_HAVE_REPORTS = """
WITH ended AS (SELECT * FROM unnest(%b::uuid[], %b::timestamptz[]) AS ended (run, slot))
SELECT run_id FROM ended
JOIN monitor_rawreport AS raw ON raw.run_id = ended.run AND raw.slot = ended.slot
UNION
SELECT run.id FROM ended JOIN monitor_run AS run ON run.id = ended.run AND run.slot = ended.slot
JOIN monitor_retentioncutoff AS cutoff ON cutoff.series_id = run.series_id AND kind = 'reports'
WHERE run.slot < kept_from
"""


class RunsDeleted(Exception):
    """Runs were deleted from the ledger between ``find`` and ``lock``."""


class LedgerEntry(NamedTuple):
    """The key of a reported run's series, and whether the ledger has a row for the run."""

    series: int
    is_listed: bool


class MatchedReport(NamedTuple):
    """A report of a known series; *body* is the text that was parsed.

    If the ledger lacks the run, the run is inserted with *trigger*.
    """

    entry: LedgerEntry
    parsed: ParsedReport
    body: bytes
    trigger: str = "reporter"

    @property
    def series(self) -> int:
        return self.entry.series

    @property
    def key(self) -> tuple[int, datetime]:
        """Return the key of the series, and the slot."""
        return self.entry.series, self.parsed.slot


class LockedRun(NamedTuple):
    """A run that this transaction has locked.

    Attributes:
        is_reported: an earlier report of the run is stored.
        is_inserted: this transaction has inserted the run, ended as the first of its reports says.
    """

    key: uuid.UUID
    is_reported: bool = False
    is_inserted: bool = False


def find(submissions: Sequence[Submission], visible: SeriesQuerySet | None) -> list[LedgerEntry | None]:
    """Return the ledger entry of each report, in order; None if its sender may not report the series.

    A sender (None: trusted code) may report the series that are assigned to it and, for slots up to the
    change, the series that were assigned to it before; never a series that is unknown or not *visible*. If
    the ledger has the run, the ledger gives the series: the report may contain an earlier name of the series.
    """
    entries: list[LedgerEntry | None] = [None] * len(submissions)
    if not submissions:
        return entries
    reports = [each.report for each in submissions]
    runs, slots = [report.run for report in reports], [report.slot for report in reports]
    names, senders = [report.series for report in reports], [each.sender for each in submissions]
    with binary.cursor() as cursor:
        columns = _REPORTED.pack([runs, slots, names, senders])
        cursor.execute(_FIND, [*columns, min(slots), max(slots)])
        for number, series, is_listed, is_allowed in cursor.fetchall():
            entries[number - 1] = LedgerEntry(series, is_listed) if is_allowed else None
    if visible is None:
        return entries
    keys = {entry.series for entry in entries if entry is not None}
    visible_keys = set(visible.filter(pk__in=keys).values_list("pk", flat=True))
    return [entry if entry is not None and entry.series in visible_keys else None for entry in entries]


def lock(reports: Sequence[MatchedReport]) -> list[LockedRun]:
    """Lock the run of each report until the end of the transaction; insert ended runs that the ledger lacks.

    The result has the order of *reports*. Concurrent calls do not deadlock: runs are inserted and locked in
    the order of their keys, and a transaction inserts no run after it has locked one.

    Raises:
        RunsDeleted: a run was deleted since ``find``; call ``find`` again.
    """
    by_run: dict[uuid.UUID, MatchedReport] = {}
    for report in reports:
        by_run.setdefault(report.parsed.run, report)
    unlisted = {run: report for run, report in by_run.items() if not report.entry.is_listed}
    inserted = insert_reported([_unlisted_end(report) for report in unlisted.values()])
    locked = {run: LockedRun(run, is_inserted=True) for run in inserted}
    if len(inserted) == len(by_run):
        return [locked[report.parsed.run] for report in reports]
    renamed = _find_by_slot({run: report for run, report in unlisted.items() if run not in inserted})
    slots = {renamed.get(run, run): report.parsed.slot for run, report in by_run.items()}
    slots = {run: slot for run, slot in slots.items() if run not in inserted}
    is_reported = _lock(slots)
    if len(is_reported) < len(slots):
        raise RunsDeleted(f"{len(slots) - len(is_reported)} runs were deleted from the ledger meanwhile")
    locked |= {run: LockedRun(run, is_reported[run]) for run in slots}
    return [locked[renamed.get(report.parsed.run, report.parsed.run)] for report in reports]


def _unlisted_end(report: MatchedReport) -> UnlistedEnd:
    return UnlistedEnd(report.series, report.trigger, reported_end(report.parsed.run, report.parsed))


def _find_by_slot(reports: Mapping[uuid.UUID, MatchedReport]) -> dict[uuid.UUID, uuid.UUID]:
    """Return the ids of runs in the ledger, by the ids of the same runs in *reports*.

    Runs are compared by series and slot. The ids differ if the series was renamed.
    """
    if not reports:
        return {}
    with binary.cursor() as cursor:
        cursor.execute(_FIND_BY_SLOT, _columns(reports))
        return dict(cursor.fetchall())


def _columns(reports: Mapping[uuid.UUID, MatchedReport]) -> list[list[Any]]:
    return [
        list(reports),
        [report.series for report in reports.values()],
        [report.parsed.slot for report in reports.values()],
    ]


def _lock(slots: Mapping[uuid.UUID, datetime]) -> dict[uuid.UUID, bool]:
    """Lock the existing runs among *slots* (slots by run id); return, by run id, whether it was reported."""
    if not slots:
        return {}
    with binary.cursor() as cursor:
        times = list(slots.values())
        cursor.execute(_LOCK, [*_LOCKED.pack([list(slots), times]), min(times), max(times)])
        states = dict(cursor.fetchall())
        reported = set()
        if ended := [run for run, state in states.items() if state in REPORTED]:
            # Only after locking: the transaction that held the lock may have written the report.
            cursor.execute(_HAVE_REPORTS, [ended, [slots[run] for run in ended]])
            reported = {run for (run,) in cursor.fetchall()}
        return {run: run in reported for run in states}
