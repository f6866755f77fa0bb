"""Ingest reports: idempotent, all or nothing for each report, with a receipt after commit."""

from __future__ import annotations

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
from monitor.runs.ingest.write import store
from reporters import report as wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from monitor.models.series import SeriesQuerySet
    from monitor.runs.ingest.write import IngestedReport

MOST_TRIES = 20  # to store a report in the slot that was chosen for it: each has another one taken meanwhile


class _Batch(NamedTuple):
    """Reports to be stored in one transaction; *numbers* are positions in the caller's list."""

    numbers: Sequence[int]
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
    sent = list(zip(bodies, [None] * len(bodies) if senders is None else senders, strict=True))
    with raising_depot_full():
        if from_outside:
            receipts = _ingest_from_outside(sent, visible, trigger, now)
        else:
            parsed = {number: _parse(body, sender, now) for number, (body, sender) in enumerate(sent)}
            receipts = _store(parsed, sent, visible, trigger)
    in_order = [receipts[number] for number in range(len(sent))]
    count_receipts(in_order)
    return in_order


def _ingest_from_outside(
    sent: Sequence[complete.Sent], visible: SeriesQuerySet | None, trigger: str, now: datetime
) -> dict[int, ReportReceipt]:
    """Store the reports *sent*, and complete the short ones; return the receipts by position.

    Short reports get their slots in the transaction that stores them; whole reports need none.
    """
    parsed: dict[int, ParsedReport | ReportReceipt] = {}
    others: dict[int, complete.Sent] = {}
    for number, (body, sender) in enumerate(sent):
        try:
            parsed[number] = _checked(parse_fast(body), sender, now)
        except NeedsStrictParser:
            others[number] = body, sender
    if not others:
        return _store(parsed, sent, visible, trigger)
    for is_last in (*(MOST_TRIES - 1) * [False], True):
        try:
            with transaction.atomic():
                return _store_completed(parsed, others, sent, visible, trigger, now)
        except SlotsTaken:
            if is_last:
                raise
        except IntegrityError as error:  # at the commit: a series was deleted meanwhile
            if is_last or not isinstance(error.__cause__, ForeignKeyViolation):
                raise
    raise AssertionError("the last try returns or raises")


def _store_completed(
    whole: Mapping[int, ParsedReport | ReportReceipt],
    others: Mapping[int, complete.Sent],
    sent: Sequence[complete.Sent],
    visible: SeriesQuerySet | None,
    trigger: str,
    now: datetime,
) -> dict[int, ReportReceipt]:
    """Complete the reports *others* and store them with the reports *whole*, and record their new ids.

    Raises:
        SlotsTaken: a slot that was chosen for a run has the report of another one meanwhile.
    """
    parsed, stored = dict(whole), list(sent)
    own: dict[int, complete.OwnSlot] = {}
    named = [report for report in whole.values() if isinstance(report, ParsedReport)]
    for number, completed in complete.parse_sent(others, visible, now, named).items():
        if isinstance(completed, wire.ReportError):
            parsed[number] = ReportReceipt(run=None, accepted=False, error=str(completed))
            continue
        stored[number] = completed.body, sent[number][1]
        parsed[number] = _checked(completed.report, sent[number][1], now)
        if completed.own is not None:
            own[number] = completed.own
    receipts = _store(parsed, stored, visible, trigger)
    if any(own[number].is_chosen and receipts[number].conflict for number in own):
        raise SlotsTaken("the slots that were chosen for runs got reports of other runs meanwhile")
    names = {
        slot.name: slot.slot
        for number, slot in own.items()
        if slot.name is not None and receipts[number].accepted and not receipts[number].conflict
    }
    choose_slots.record_names(names, now)
    return receipts


def _store(
    parsed: Mapping[int, ParsedReport | ReportReceipt],
    sent: Sequence[complete.Sent],
    visible: SeriesQuerySet | None,
    trigger: str,
) -> dict[int, ReportReceipt]:
    """Store the reports among *parsed*, whose bodies and senders are in *sent*; return all receipts."""
    receipts = {number: each for number, each in parsed.items() if isinstance(each, ReportReceipt)}
    reports = {number: each for number, each in parsed.items() if isinstance(each, ParsedReport)}
    batches = [_Batch(list(reports))]
    while batches:
        batch = batches.pop()
        batch_reports = [reports[number] for number in batch.numbers]
        entries = match_runs.find(batch_reports, [sent[number][1] for number in batch.numbers], visible)
        matched = {
            number: MatchedReport(entry, reports[number], sent[number][0], trigger)
            for number, entry in zip(batch.numbers, entries, strict=True)
            if entry is not None
        }
        try:
            ingested = store(list(matched.values()), create_partitions=batch.create_partitions)
        except TooManyMetrics as error:
            within = [number for number in matched if reports[number].run not in error.refused]
            for number in matched.keys() - set(within):
                receipts[number] = _refused(reports[number], error.refused[reports[number].run])
            batches.append(batch._replace(numbers=within))
        except (RunsDeleted, IntegrityError, DataError, OverflowError) as error:
            if len(matched) == 1 and isinstance(error, (DataError, OverflowError)):
                (number,) = matched
                receipts[number] = _refused(reports[number], f"the depot cannot hold it: {error}")
            else:
                batches += _next_batches(batch._replace(numbers=list(matched)), error)
        else:
            for number, each in zip(matched, ingested, strict=True):
                receipts[number] = _receipt(reports[number], each)
    for number in reports.keys() - receipts.keys():
        receipts[number] = _refused(reports[number], unknown_series(reports[number].series, sent[number][1]))
    return receipts


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


def _parse(body: bytes, sender: str | None, now: datetime) -> ParsedReport | ReportReceipt:
    """Parse a report; return a refusal if it is malformed, not its sender's, or its times are implausible."""
    try:
        return _checked(parse(body), sender, now)
    except wire.ReportError as error:
        return ReportReceipt(run=None, accepted=False, error=str(error))


def _checked(report: ParsedReport, sender: str | None, now: datetime) -> ParsedReport | ReportReceipt:
    """Return *report*, or a refusal if it is not its sender's or its times are implausible."""
    if error_text := _sender_error(report, sender):
        return _refused(report, error_text)
    if error_text := _early_error(report):
        return _refused(report, error_text)
    if error_text := _time_error(report, now + AHEAD):
        is_premature = not _time_error(report, now + PREMATURE)
        return replace(_refused(report, error_text), premature=is_premature)
    return report


def _refused(report: ParsedReport, error: str) -> ReportReceipt:
    return ReportReceipt(report.run, accepted=False, error=error)


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
        half = len(batch.numbers) // 2
        return [batch._replace(numbers=batch.numbers[half:]), batch._replace(numbers=batch.numbers[:half])]
    if isinstance(error.__cause__, CheckViolation) and not batch.create_partitions:
        return [batch._replace(create_partitions=True)]
    is_deleted = isinstance(error, RunsDeleted) or isinstance(error.__cause__, ForeignKeyViolation)
    if is_deleted and not batch.is_retry:
        return [batch._replace(is_retry=True)]
    raise error
