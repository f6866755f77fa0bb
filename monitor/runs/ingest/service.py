"""Ingest reports: idempotent, all or nothing for each report, with a receipt after commit."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone
from psycopg.errors import CheckViolation, ForeignKeyViolation

from monitor.runs.ingest import choose_slots, complete, match_runs
from monitor.runs.ingest.complete import unknown_series
from monitor.runs.ingest.conflicts import MOST_PER_RUN, IngestOutcome
from monitor.runs.ingest.counts import count_receipts
from monitor.runs.ingest.disk_guard import raising_depot_full, require_space
from monitor.runs.ingest.fast_parser import NeedsStrictParser, ParsedReport, parse, parse_fast
from monitor.runs.ingest.match_runs import MatchedReport, RunsDeleted
from monitor.runs.ingest.plausible_times import AHEAD, PREMATURE, time_error
from monitor.runs.ingest.receipt import ReportReceipt
from monitor.runs.ingest.resolve_metrics import TooManyMetrics
from monitor.runs.ingest.submission import Submission
from monitor.runs.ingest.write import store
from reporters import report as wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.models.series import SeriesQuerySet
    from monitor.runs.ingest.write import IngestedReport

MOST_TRIES = 20  # to store a report in the slot that was chosen for it: each has another one taken meanwhile


class _Batch(NamedTuple):
    """Reports to be stored in one transaction."""

    submissions: Sequence[Submission]
    create_partitions: bool = False
    is_retry: bool = False  # after runs or series were deleted


class SlotsTaken(Exception):
    """Whole reports, which need no lock, were stored in the slots that were chosen for other runs, each time.

    Nothing was stored; a retry chooses other slots.
    """


def ingest(body: bytes) -> ReportReceipt:
    """Store one report; see ``ingest_all``."""
    return ingest_all([body])[0]


def ingest_all(
    bodies: Sequence[bytes],
    visible: SeriesQuerySet | None = None,
    *,
    senders: Sequence[str | None] | None = None,
    trigger: str = "reporter",
    from_outside: bool = False,
) -> list[ReportReceipt]:
    """Store reports in one transaction, each at most once; return a receipt for each report, in order.

    A report that cannot be stored is refused with the reason, and the others are stored. *senders* are the
    reporters whose credentials sent the reports (None: trusted code): a report that its sender may not send
    is refused; see ``match_runs.find``. With *visible*, all other series count as unknown. A run that the
    ledger lacks is inserted with *trigger*. *from_outside*: the senders are programs outside of gridcast;
    their short reports are completed, and unknown fields are refused (``complete``). After an error no
    receipt exists, and the sender has to send all reports again.

    Raises:
        DepotFull: the disk has only the reserve left.
        SlotsTaken: other senders took the slots of short reports, ``MOST_TRIES`` times.
        DatabaseError: the depot is unavailable.
    """
    require_space()
    now = timezone.now()
    by = [None] * len(bodies) if senders is None else senders
    submissions = [Submission(body, sender) for body, sender in zip(bodies, by, strict=True)]
    with raising_depot_full():
        if from_outside:
            submissions = _ingest_from_outside(submissions, visible, trigger, now)
        else:
            for each in submissions:
                _read(each, now)
            _store(submissions, visible, trigger)
    receipts = [each.final_receipt for each in submissions]
    count_receipts(receipts)
    return receipts


def _ingest_from_outside(
    submissions: list[Submission], visible: SeriesQuerySet | None, trigger: str, now: datetime
) -> list[Submission]:
    """Store the reports, and complete the short ones; return all with their receipts, in order.

    Short reports get their slots in the transaction that stores them; whole reports need none.
    """
    for each in submissions:
        with contextlib.suppress(NeedsStrictParser):
            each.parsed = parse_fast(each.body)
            _check(each, now)
    if all(each.parsed is not None for each in submissions):
        _store(submissions, visible, trigger)
        return submissions
    for is_last in (*(MOST_TRIES - 1) * [False], True):
        tried = [replace(each) for each in submissions]
        try:
            with transaction.atomic():
                _store_completed(tried, visible, trigger, now)
        except SlotsTaken:
            if is_last:
                raise
        except IntegrityError as error:  # at the commit: a series was deleted meanwhile
            if is_last or not isinstance(error.__cause__, ForeignKeyViolation):
                raise
        else:
            return tried
    raise AssertionError("the last try returns or raises")


def _store_completed(
    submissions: Sequence[Submission], visible: SeriesQuerySet | None, trigger: str, now: datetime
) -> None:
    """Complete those of *submissions* that were not read yet, store all, and record the new ids.

    Raises:
        SlotsTaken: a slot that was chosen for a run has the report of another one meanwhile.
    """
    others = [each for each in submissions if each.parsed is None]
    complete.read_all(others, visible, now, [each.report for each in submissions if each.is_waiting])
    for each in others:
        if each.is_waiting:
            _check(each, now)
    _store(submissions, visible, trigger)
    own = [(each.own, each.final_receipt) for each in others if each.own is not None]
    if any(slot.is_chosen and receipt.conflict for slot, receipt in own):
        raise SlotsTaken("the slots that were chosen for runs got reports of other runs meanwhile")
    names = {
        slot.name: slot.slot
        for slot, receipt in own
        if slot.name is not None and receipt.accepted and not receipt.conflict
    }
    choose_slots.record_names(names, now)


def _store(submissions: Sequence[Submission], visible: SeriesQuerySet | None, trigger: str) -> None:
    """Store or refuse those of *submissions* that wait, as many as possible in one transaction."""
    waiting = [each for each in submissions if each.is_waiting]
    batches = [_Batch(waiting)]
    while batches:
        batch = batches.pop()
        entries = match_runs.find(batch.submissions, visible)
        matched = {
            each: MatchedReport(entry, each.report, each.body, trigger)
            for each, entry in zip(batch.submissions, entries, strict=True)
            if entry is not None
        }
        batch = batch._replace(submissions=list(matched))
        try:
            ingested = store(list(matched.values()), create_partitions=batch.create_partitions)
        except TooManyMetrics as error:
            for each in matched:
                if each.report.run in error.refused:
                    each.refuse(error.refused[each.report.run])
            batches.append(batch._replace(submissions=[each for each in matched if each.is_waiting]))
        except (RunsDeleted, IntegrityError, DataError, OverflowError) as error:
            if len(matched) == 1 and isinstance(error, (DataError, OverflowError)):
                batch.submissions[0].refuse(f"the depot cannot hold it: {error}")
            else:
                batches += _next_batches(batch, error)
        else:
            for each, stored in zip(matched, ingested, strict=True):
                each.receipt = _receipt(each.report, stored)
    for each in waiting:
        if each.is_waiting:
            each.refuse(unknown_series(each.report.series, each.sender))


def _receipt(report: ParsedReport, stored: IngestedReport) -> ReportReceipt:
    if stored.outcome is IngestOutcome.NOT_KEPT:
        error = f"{MOST_PER_RUN} other reports conflict with the first report of the run; no more are kept"
        return ReportReceipt(report.run, accepted=False, conflict=True, error=error)
    return ReportReceipt(
        report.run,
        accepted=True,
        duplicate=stored.outcome is IngestOutcome.DUPLICATE,
        conflict=stored.outcome is IngestOutcome.CONFLICT,
        stored=(stored.run, report.slot),
    )


def _read(submission: Submission, now: datetime) -> None:
    """Read a report; refuse it if it is malformed, not its sender's, or its times are implausible."""
    try:
        submission.parsed = parse(submission.body)
    except wire.ReportError as error:
        submission.refuse(str(error))
    else:
        _check(submission, now)


def _check(submission: Submission, now: datetime) -> None:
    """Refuse a report that was read if it is not its sender's or its times are implausible."""
    report = submission.report
    if error_text := _sender_error(report, submission.sender) or _early_error(report):
        submission.refuse(error_text)
    elif error_text := _time_error(report, now + AHEAD):
        submission.refuse(error_text, premature=not _time_error(report, now + PREMATURE))


def _sender_error(report: ParsedReport, sender: str | None) -> str:
    if sender is None or sender == report.reporter:
        return ""
    return f"reporter: expected {sender!r}, the reporter of the credential, got {report.reporter!r}"


def _early_error(report: ParsedReport) -> str:
    """Return why a run took the place of a later one, else "".

    A reporter with a clock that was ahead has run the slot before its time, and runs it again when it comes.
    """
    early_seconds = (report.slot - report.started_at).total_seconds()
    if not report.correction_seconds or early_seconds <= AHEAD.total_seconds():
        return ""
    ahead = -report.correction_seconds
    return (
        f"slot: the run began {early_seconds:,.0f} s before its slot, {wire.rfc3339(report.slot)}: the clock"
        f" of its host was ahead by {ahead:,.0f} s; the slot is run at its time"
    )


def _time_error(report: ParsedReport, latest: datetime) -> str:
    """Return a description of the first time of *report* that is before 1970 or after *latest*, else ""."""
    for name, time in (("slot", report.slot), ("started_at", report.started_at)):
        if error_text := time_error(name, time, latest):
            return error_text
    if report.seconds > (latest - report.started_at).total_seconds():
        started = wire.rfc3339(report.started_at)
        return f"seconds: a run that started at {started} and took {report.seconds:g} s has not ended yet"
    return ""


def _next_batches(batch: _Batch, error: Exception) -> list[_Batch]:
    """Return the batches that replace the failed *batch*; the caller stores them from the last to the first.

    If no replacement could succeed, *error* is raised. Most partitions exist already: partitions are created
    only after an insert has failed because a partition is missing.
    """
    if isinstance(error, (DataError, OverflowError)):  # the depot cannot hold one of the reports
        half = len(batch.submissions) // 2
        parts = batch.submissions[half:], batch.submissions[:half]
        return [batch._replace(submissions=part) for part in parts]
    if isinstance(error.__cause__, CheckViolation) and not batch.create_partitions:
        return [batch._replace(create_partitions=True)]
    is_deleted = isinstance(error, RunsDeleted) or isinstance(error.__cause__, ForeignKeyViolation)
    if is_deleted and not batch.is_retry:
        return [batch._replace(is_retry=True)]
    raise error
