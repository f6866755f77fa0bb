"""Parse stored reports again with a newer parser; replace samples, and keep old values as corrections."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from monitor.core.compression import unpack
from monitor.depot.retention.cutoffs import cutoffs_of
from monitor.depot.rollups import mark_dirty
from monitor.models import Correction, Forecast
from monitor.models.retention_cutoff import DataKind
from monitor.models.run import State
from monitor.runs.ingest import extract_metrics, reparse_sql, resolve_metrics
from monitor.runs.ingest.fast_parser import ParsedReport, parse
from monitor.runs.ingest.reparse_sql import StoredReport, StoredSample
from monitor.runs.ingest.reported_end import ended_at
from monitor.runs.ingest.resolve_metrics import MeasuredReport
from reporters import report as wire

if TYPE_CHECKING:
    from monitor.depot.retention.cutoffs import RetentionCutoffs

logger = logging.getLogger(__name__)
BATCH = 200  # reports per transaction
_FIRST_RUN = UUID(int=0)


@dataclass(frozen=True)
class MetricParser:
    """A version of the function that extracts metric values from a report."""

    version: int
    values: Callable[[ParsedReport], Mapping[str, float]]


PARSER = MetricParser(extract_metrics.VERSION, extract_metrics.values)


@dataclass
class ReparseCounts:
    """Counts of reports and of samples.

    Attributes:
        read: reports that were parsed again.
        unreadable: malformed reports.
        frozen: reports that are too old to have samples.
        changed, added, removed: samples that were changed, added or removed.
    """

    read: int = 0
    unreadable: int = 0
    frozen: int = 0
    changed: int = 0
    added: int = 0
    removed: int = 0


@dataclass
class _Changes:
    """The changes of one batch: samples to delete, samples to store, and a correction for each."""

    version: int
    counts: ReparseCounts
    now: datetime = field(default_factory=timezone.now)
    removed: list[StoredSample] = field(default_factory=list)
    stored: list[StoredSample] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)

    def store(self, old: StoredSample | None, new: StoredSample) -> None:
        if old == new:
            return
        if old is None:
            self.counts.added += 1
        else:
            self.counts.changed += 1
        self.stored.append(new)
        self._correct(new, old, new)

    def remove(self, old: StoredSample) -> None:
        self.counts.removed += 1
        self.removed.append(old)
        self._correct(old, old, None)

    def _correct(self, sample: StoredSample, old: StoredSample | None, new: StoredSample | None) -> None:
        self.corrections.append(
            Correction(
                metric_id=sample.metric,
                time=sample.time,
                old_value=old.value if old else None,
                old_passed=old.passed if old else None,
                new_value=new.value if new else None,
                new_passed=new.passed if new else None,
                parser_version=self.version,
                corrected_at=self.now,
            )
        )


class _DryRun(Exception):
    """Raised to roll back the transaction of a dry run."""


def reparse(
    since: datetime,
    *,
    series: Collection[int] | None = None,
    parser: MetricParser = PARSER,
    dry_run: bool = False,
    batch: int = BATCH,
) -> Iterator[ReparseCounts]:
    """Parse the reports again that an older version of *parser* has parsed.

    Reads reports with slots from *since* on, of *series* (primary keys; None: all). Each *batch* of reports
    is one transaction, after which the counts so far are yielded. If the process is killed, the next call
    continues with the remaining reports. With *dry_run* every transaction is rolled back.
    """
    counts, slot, run = ReparseCounts(), since, _FIRST_RUN
    while reports := reparse_sql.after(slot, run, version=parser.version, series=series, at_most=batch):
        try:
            with transaction.atomic():
                _reparse_batch(reports, parser, counts)
                if dry_run:
                    raise _DryRun
        except _DryRun:
            pass
        slot, run = reports[-1].slot, reports[-1].run
        yield counts


def _reparse_batch(reports: Sequence[StoredReport], parser: MetricParser, counts: ReparseCounts) -> None:
    bodies = reparse_sql.lock(reports, version=parser.version)
    cutoffs = cutoffs_of([(report.series, report.slot) for report in reports], timezone.now())
    outdated = [report for report in reports if report.run in bodies]
    parsed = dict(_parse_kept(outdated, bodies, cutoffs, counts))
    if not parsed:
        return
    old_samples: dict[tuple[int, datetime], dict[int, StoredSample]] = defaultdict(dict)
    for sample in reparse_sql.samples(list(parsed)):
        old_samples[sample.series, sample.time][sample.metric] = sample
    new_values, changes = _new_values(parsed, parser), _Changes(parser.version, counts)
    for stored, report in parsed.items():
        old = old_samples[stored.series, stored.slot]
        new = new_values.get(stored, {})
        known_at, passed = ended_at(report), report.outcome == State.PASSED
        for metric, value in new.items():
            sample = StoredSample(stored.series, stored.slot, metric, known_at, value, passed)
            changes.store(old.get(metric), sample)
        for metric in old.keys() - new.keys():
            changes.remove(old[metric])
    reparse_sql.replace(changes.removed, changes.stored)
    _record_changes(changes)
    reparse_sql.set_version(list(parsed), version=parser.version)
    counts.read += len(parsed)


def _parse_kept(
    reports: Sequence[StoredReport],
    bodies: Mapping[UUID, tuple[int, bytes]],
    cutoffs: RetentionCutoffs,
    counts: ReparseCounts,
) -> Iterator[tuple[StoredReport, ParsedReport]]:
    for report in reports:
        if not cutoffs.is_kept(DataKind.SAMPLES, report.series, report.slot):
            counts.frozen += 1
            continue
        try:
            yield report, parse(unpack(*bodies[report.run]))
        except (wire.ReportError, ValueError) as error:
            logger.warning("cannot parse the report of %s again: %s", report.run, error)
            counts.unreadable += 1


def _new_values(
    parsed: Mapping[StoredReport, ParsedReport], parser: MetricParser
) -> dict[StoredReport, dict[int, float]]:
    """Return, by report, the values that *parser* extracts, by metric key; create missing metrics."""
    measured = {
        stored: MeasuredReport(stored.series, report, values)
        for stored, report in parsed.items()
        if (values := parser.values(report))
    }
    metric_ids = resolve_metrics.metric_ids(list(measured.values()), is_limited=False)
    return {
        stored: {ids[name]: value for name, value in report.values.items()}
        for (stored, report), ids in zip(measured.items(), metric_ids, strict=True)
    }


def _record_changes(changes: _Changes) -> None:
    """Store the corrections, mark the hours of changed samples as dirty, and reset the affected scores."""
    changed = [*changes.removed, *changes.stored]
    if not changed:
        return
    Correction.objects.bulk_create(changes.corrections)
    mark_dirty.mark({(sample.series, sample.time) for sample in changed})
    _unscore(changed)


def _unscore(changed: Sequence[StoredSample]) -> None:
    """Clear the actual values of forecasts that *changed* may affect: these forecasts are scored again."""
    earliest: dict[int, datetime] = {}
    latest: dict[int, datetime] = {}
    for sample in changed:
        earliest[sample.metric] = min(sample.time, earliest.get(sample.metric, sample.time))
        latest[sample.metric] = max(sample.time, latest.get(sample.metric, sample.time))
    for metric, first in earliest.items():
        affected = Q(metric=metric, last_time__lt=latest[metric], truth_time__gte=first)
        Forecast.objects.filter(affected).update(truth=None, truth_time=None)
