"""Write reports into the depot, many in few statements: run, raw report, usage and samples of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from monitor.compression import pack
from monitor.db import binary
from monitor.depot.retention.cutoffs import cutoffs_of
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.ingest import extract_metrics, match_runs, raw_reports, resolve_metrics
from monitor.ingest.resolve_metrics import Measured
from monitor.ingest.usage import account
from monitor.ledger.transitions import ReportedEnd, end_reported
from monitor.models.retention_cutoff import DataKind
from monitor.models.run import State

if TYPE_CHECKING:
    import uuid

    from monitor.ingest.fast_parser import ParsedReport
    from monitor.ingest.match_runs import Incoming

_CAUSE_CHARACTERS = 200
_CHARACTERS = 100  # of a stage or a resource in the ledger; the raw report has all of it


def store(incoming: Sequence[Incoming]) -> list[bool]:
    """Write what is not there yet; of each whether it was new. To be called in a transaction.

    Of a slot that is older than its series keeps things, the ledger is told alone.

    Several may do so at once: rows are locked, and made, in the order of their keys.
    """
    new: dict[uuid.UUID, Incoming] = {}
    is_new = []
    for locked, one in zip(match_runs.locked(incoming), incoming, strict=True):
        is_new.append(not locked.is_reported and locked.run not in new)
        if is_new[-1]:
            new[locked.run] = one
    if new:
        _write(new)
    return is_new


def _write(new: Mapping[uuid.UUID, Incoming]) -> None:
    """What is too old to be measured leaves a mark at *now*: its hour is final, but not what came last."""
    now = timezone.now()
    kept = cutoffs_of([one.at for one in new.values()], now)
    packed = [_packed(run, one, now) for run, one in new.items() if kept.is_kept(DataKind.REPORTS, *one.at)]
    measured = [one for one in new.values() if kept.is_kept(DataKind.SAMPLES, *one.at)]
    found = _samples(measured)
    copied = raw_reports.are_copied(packed) or write.are_copied(found)
    with nullcontext() if copied else binary.pipeline():
        end_reported([_ending(run, one.report) for run, one in new.items()])
        account({run: one.report for run, one in new.items()})
        raw_reports.write(packed)
        write.write_runs(found)
        mark_dirty.mark(
            {one.at if kept.is_kept(DataKind.SAMPLES, *one.at) else (one.series, now) for one in new.values()}
        )


def _packed(run: uuid.UUID, one: Incoming, received_at: datetime) -> raw_reports.RawReportRow:
    return raw_reports.RawReportRow(
        run, one.report.slot, received_at, *pack(one.body), extract_metrics.VERSION
    )


def _ending(run: uuid.UUID, report: ParsedReport) -> ReportedEnd:
    failure = report.failure
    ran = report.outcome != State.SKIPPED
    return ReportedEnd(
        run=run,
        slot=report.slot,
        state=report.outcome,
        cause=f"reported by {report.reporter}"[:_CAUSE_CHARACTERS],
        reason=report.reason,
        stage=failure.stage[:_CHARACTERS] if failure else "",
        failed_resource=(failure.resource or "")[:_CHARACTERS] if failure else "",
        started_at=report.started_at if ran else None,
        ended_at=ended_at(report) if ran else None,
    )


def ended_at(report: ParsedReport) -> datetime:
    return report.started_at + timedelta(seconds=report.seconds)


def _samples(incoming: Iterable[Incoming]) -> list[write.RunSamples]:
    """What is measured, under the keys of its metrics; those that are new are made."""
    measured = [
        Measured(one.series, one.report, found)
        for one in incoming
        if (found := extract_metrics.values(one.report))
    ]
    return [
        write.RunSamples(
            [metrics[name] for name in one.values],
            one.report.slot,
            ended_at(one.report),
            list(one.values.values()),
            one.report.outcome == State.PASSED,
        )
        for one, metrics in zip(measured, resolve_metrics.metrics(measured), strict=True)
    ]
