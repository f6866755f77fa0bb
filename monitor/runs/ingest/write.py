"""Store reports in one transaction: runs, raw reports, usage and samples, with few statements per batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

from django.db import transaction
from django.utils import timezone

from monitor.core.compression import pack
from monitor.core.db import binary, partitions
from monitor.depot.retention.cutoffs import cutoffs_of
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.models.retention_cutoff import DataKind
from monitor.models.run import State
from monitor.runs.ingest import conflicts, extract_metrics, match_runs, raw_reports, resolve_metrics
from monitor.runs.ingest.conflicts import IngestOutcome
from monitor.runs.ingest.reported_end import ended_at, reported_end
from monitor.runs.ingest.resolve_metrics import MeasuredReport
from monitor.runs.ingest.usage import record_usage
from monitor.runs.ledger.transitions import end_reported

if TYPE_CHECKING:
    import uuid
    from datetime import datetime

    from monitor.depot.retention.cutoffs import RetentionCutoffs
    from monitor.runs.ingest.match_runs import MatchedReport


class IngestedReport(NamedTuple):
    """What became of a report; *run* is the id in the ledger, which differs if the series was renamed."""

    run: uuid.UUID
    outcome: IngestOutcome


def store(reports: Sequence[MatchedReport], *, create_partitions: bool = False) -> list[IngestedReport]:
    """Store the reports of runs that have no report yet; return, for each report, what became of it.

    For a slot older than the retention of its series only the ledger changes. With *create_partitions*,
    missing partitions for the slots are created first. Concurrent calls do not deadlock: rows are inserted
    and locked in the order of their keys.

    Raises:
        match_runs.RunsDeleted: a run was deleted since ``match_runs.find`` read it.
        resolve_metrics.TooManyMetrics: reports have metrics beyond the limit of their series.
    """
    if not reports:
        return []
    with transaction.atomic():
        if create_partitions:
            partitions.create_for({report.parsed.slot for report in reports})
        runs = match_runs.lock(reports)
        new: dict[uuid.UUID, MatchedReport] = {}
        for run, report in zip(runs, reports, strict=True):
            if not run.is_reported:
                new.setdefault(run.key, report)
        later = [
            (run.key, report)
            for run, report in zip(runs, reports, strict=True)
            if new.get(run.key) is not report
        ]
        outcomes = iter(conflicts.compare(later, {run: report.body for run, report in new.items()}))
        if new:
            _write(new, {run.key for run in runs if run.is_inserted})
        return [
            IngestedReport(run.key, IngestOutcome.NEW if new.get(run.key) is report else next(outcomes))
            for run, report in zip(runs, reports, strict=True)
        ]


def _write(new: Mapping[uuid.UUID, MatchedReport], inserted: Collection[uuid.UUID]) -> None:
    """Write the first reports of locked runs, by run; the runs *inserted* have ended already."""
    now = timezone.now()  # read after waiting for the locks, or an hour too early could be marked as dirty
    cutoffs = cutoffs_of([report.key for report in new.values()], now)
    measured = [report for report in new.values() if cutoffs.is_kept(DataKind.SAMPLES, *report.key)]
    raw = [
        _raw_report(run, report, now)
        for run, report in new.items()
        if cutoffs.is_kept(DataKind.REPORTS, *report.key)
    ]
    samples = _samples(measured)
    uses_copy = raw_reports.uses_copy(raw) or write.uses_copy(samples)
    with nullcontext() if uses_copy else binary.pipeline():
        end_reported([reported_end(run, new[run].parsed) for run in new if run not in inserted])
        record_usage({run: report.parsed for run, report in new.items()})
        raw_reports.write(raw)
        write.write_runs(samples)
        mark_dirty.mark(_changed_hours(new.values(), cutoffs, now))


def _raw_report(run: uuid.UUID, report: MatchedReport, received_at: datetime) -> raw_reports.RawReportRow:
    packing, packed = pack(report.body)
    version = extract_metrics.VERSION
    return raw_reports.RawReportRow(run, report.parsed.slot, received_at, packing, packed, version)


def _changed_hours(
    reports: Iterable[MatchedReport], cutoffs: RetentionCutoffs, now: datetime
) -> set[tuple[int, datetime]]:
    """Return the hours to mark as dirty, each as (series key, a time in the hour).

    For a slot whose samples have expired, the time is *now*: the rollups of the slot are final, but the
    latest results of the series changed.
    """
    return {
        report.key if cutoffs.is_kept(DataKind.SAMPLES, *report.key) else (report.series, now)
        for report in reports
    }


def _samples(reports: Iterable[MatchedReport]) -> list[write.RunSamples]:
    """Return the samples of each report that has values; create missing metrics."""
    measured = [
        MeasuredReport(report.series, report.parsed, values)
        for report in reports
        if (values := extract_metrics.values(report.parsed))
    ]
    metric_ids = resolve_metrics.metric_ids(measured)
    return [
        write.RunSamples(
            [ids[name] for name in report.values],
            report.parsed.slot,
            ended_at(report.parsed),
            list(report.values.values()),
            report.parsed.outcome == State.PASSED,
        )
        for report, ids in zip(measured, metric_ids, strict=True)
    ]
