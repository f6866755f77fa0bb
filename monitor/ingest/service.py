"""Ingest reports: idempotent, all or nothing for each report, with a receipt after commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.db import DataError, IntegrityError
from django.utils import timezone
from psycopg.errors import CheckViolation, ForeignKeyViolation

from monitor.ingest import match_runs
from monitor.ingest.disk_guard import raising_depot_full, require_space
from monitor.ingest.fast_parser import ParsedReport, parse
from monitor.ingest.match_runs import MatchedReport, RunsDeleted
from monitor.ingest.write import store
from reporters import report as wire

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from monitor.models.series import SeriesQuerySet

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=1)  # the latest slot after now: reporters' clocks are ahead by minutes, not by days


@dataclass(frozen=True)
class ReportReceipt:
    """The outcome of ingesting one report; the sender may delete an *accepted* report."""

    run: uuid.UUID | None
    accepted: bool
    duplicate: bool = False
    error: str = ""


class _Batch(NamedTuple):
    """Reports to be stored in one transaction; *numbers* are positions in the caller's list."""

    numbers: Sequence[int]
    create_partitions: bool = False
    is_retry: bool = False  # after runs or series were deleted


def ingest(body: bytes) -> ReportReceipt:
    """Store one report; see ``ingest_all``."""
    return ingest_all([body])[0]


def ingest_all(
    bodies: Sequence[bytes], visible: SeriesQuerySet | None = None, *, trigger: str = "reporter"
) -> list[ReportReceipt]:
    """Store reports in one transaction, each at most once; return a receipt for each report, in order.

    A report that cannot be stored is refused with the reason, and the others are stored. With *visible*, all
    other series count as unknown. A run that the ledger lacks is inserted with *trigger*. After an error no
    receipt exists, and the sender has to send all reports again.

    Raises:
        DepotFull: the disk has only the reserve left.
        DatabaseError: the depot is unavailable.
    """
    require_space()
    now = timezone.now()
    parsed = [_parse(body, now) for body in bodies]
    receipts = {
        number: receipt for number, receipt in enumerate(parsed) if isinstance(receipt, ReportReceipt)
    }
    reports = {number: report for number, report in enumerate(parsed) if isinstance(report, ParsedReport)}
    batches = [_Batch(list(reports))]
    with raising_depot_full():
        while batches:
            batch = batches.pop()
            entries = match_runs.find([reports[number] for number in batch.numbers], visible)
            matched = {
                number: MatchedReport(entries[reports[number].run], reports[number], bodies[number], trigger)
                for number in batch.numbers
                if reports[number].run in entries
            }
            try:
                is_new = store(list(matched.values()), create_partitions=batch.create_partitions)
            except (RunsDeleted, IntegrityError, DataError, OverflowError) as error:
                if len(matched) == 1 and isinstance(error, (DataError, OverflowError)):
                    (number,) = matched
                    receipts[number] = _refused(reports[number], f"the depot cannot hold it: {error}")
                else:
                    batches += _next_batches(batch._replace(numbers=list(matched)), error)
            else:
                for number, new in zip(matched, is_new, strict=True):
                    receipts[number] = ReportReceipt(reports[number].run, accepted=True, duplicate=not new)
    for number in reports.keys() - receipts.keys():
        receipts[number] = _refused(reports[number], f"there is no series {reports[number].series!r}")
    return [receipts[number] for number in range(len(bodies))]


def _parse(body: bytes, now: datetime) -> ParsedReport | ReportReceipt:
    """Parse a report; return a refusal if it is malformed or its times are implausible."""
    try:
        report = parse(body)
    except wire.ReportError as error:
        return ReportReceipt(run=None, accepted=False, error=str(error))
    error_text = _time_error(report, now)
    return _refused(report, error_text) if error_text else report


def _refused(report: ParsedReport, error: str) -> ReportReceipt:
    return ReportReceipt(report.run, accepted=False, error=error)


def _time_error(report: ParsedReport, now: datetime) -> str:
    """Return a description of the first implausible time of *report*; empty if all times are plausible.

    A reporter whose clock is wrong must not create partitions for decades, nor samples that become known only
    years from now.
    """
    latest = now + AHEAD
    for name, time in (("slot", report.slot), ("started_at", report.started_at)):
        if not EARLIEST <= time <= latest:
            limit = (
                "is before 1970" if time < EARLIEST else f"is more than a day after now, {wire.rfc3339(now)}"
            )
            return f"{name}: {wire.rfc3339(time)} {limit}: set the clock of the reporter and send it again"
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
