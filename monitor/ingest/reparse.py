"""Read raw reports again by a newer parser: its samples replace the old ones, which are remembered."""

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

from monitor.compression import unpack
from monitor.depot.retention.cutoffs import cutoffs_of
from monitor.depot.rollups import mark_dirty
from monitor.ingest import extract_metrics, reparse_sql, resolve_metrics
from monitor.ingest.fast_parser import ParsedReport, read
from monitor.ingest.reparse_sql import Reported, Sampled
from monitor.ingest.resolve_metrics import Measured
from monitor.ingest.write import ended_at
from monitor.models import Correction, Forecast
from monitor.models.retention_cutoff import DataKind
from monitor.models.run import State
from reporters import report as wire

if TYPE_CHECKING:
    from monitor.depot.retention.cutoffs import RetentionCutoffs

logger = logging.getLogger(__name__)
AT_ONCE = 200  # reports, in one transaction
_FIRST = UUID(int=0)
Had = Mapping[tuple[int, datetime], Sequence[Sampled]]  # samples by the key of their series and their time


@dataclass(frozen=True)
class Parser:
    """What numbers are made of a report, by which *version* of it."""

    version: int
    values: Callable[[ParsedReport], Mapping[str, float]]


PARSER = Parser(extract_metrics.VERSION, extract_metrics.values)


@dataclass
class ReparseCounts:
    """Counts of reports: *read* again, *unreadable*, and *frozen*, whose samples are gone for their age; and
    of samples that were *changed*, *added* and *removed*."""

    read: int = 0
    unreadable: int = 0
    frozen: int = 0
    changed: int = 0
    added: int = 0
    removed: int = 0


@dataclass
class _Batch:
    """What becomes of some runs: samples that go, samples that come, and what is remembered of both."""

    version: int
    done: ReparseCounts
    now: datetime = field(default_factory=timezone.now)
    gone: list[Sampled] = field(default_factory=list)
    put: list[Sampled] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)

    def replace(self, old: Sampled | None, new: Sampled) -> None:
        if old is None:
            self.done.added += 1
        elif old.said == new.said:
            return
        else:
            self.done.changed += 1
        self.put.append(new)
        self._remember(new, old, new)

    def remove(self, old: Sampled) -> None:
        self.done.removed += 1
        self.gone.append(old)
        self._remember(old, old, None)

    def _remember(self, of: Sampled, old: Sampled | None, new: Sampled | None) -> None:
        self.corrections.append(
            Correction(
                metric_id=of.metric,
                time=of.time,
                old_value=old.value if old else None,
                old_passed=old.passed if old else None,
                new_value=new.value if new else None,
                new_passed=new.passed if new else None,
                parser_version=self.version,
                corrected_at=self.now,
            )
        )


class _NothingKept(Exception):
    """Of a dry run: what it did is undone."""


def reparse(
    since: datetime,
    *,
    series: Collection[int] | None = None,
    parser: Parser = PARSER,
    dry_run: bool = False,
    at_once: int = AT_ONCE,
) -> Iterator[ReparseCounts]:
    """Read again, batch by batch, what an older version has read, of slots from *since* on, of *series*
    (their keys; None: all); yields what was done so far.

    Each batch is a transaction: who is killed goes on by calling it again. With *dry_run* nothing is kept.
    """
    done, slot, run = ReparseCounts(), since, _FIRST
    while runs := reparse_sql.after(slot, run, version=parser.version, series=series, at_most=at_once):
        try:
            with transaction.atomic():
                _reparse(runs, parser, done)
                if dry_run:
                    raise _NothingKept
        except _NothingKept:
            pass
        slot, run = runs[-1].slot, runs[-1].run
        yield done


def _reparse(runs: Sequence[Reported], parser: Parser, done: ReparseCounts) -> None:
    bodies = reparse_sql.locked(runs, version=parser.version)
    kept = cutoffs_of([(one.series, one.slot) for one in runs], timezone.now())
    reports = dict(_readable([one for one in runs if one.run in bodies], bodies, kept, done))
    if not reports:
        return
    had: dict[tuple[int, datetime], list[Sampled]] = defaultdict(list)
    for sample in reparse_sql.samples(list(reports)):
        had[sample.series, sample.time].append(sample)
    wanted, batch = _wanted(reports, parser), _Batch(parser.version, done)
    for one, report in reports.items():
        _exchange(one, report, wanted.get(one, {}), had, batch)
    reparse_sql.exchange(batch.gone, batch.put)
    _keep(batch)
    reparse_sql.parsed(list(reports), version=parser.version)
    done.read += len(reports)


def _readable(
    runs: Sequence[Reported],
    bodies: Mapping[UUID, tuple[int, bytes]],
    kept: RetentionCutoffs,
    done: ReparseCounts,
) -> Iterator[tuple[Reported, ParsedReport]]:
    for one in runs:
        if not kept.is_kept(DataKind.SAMPLES, one.series, one.slot):
            done.frozen += 1
            continue
        try:
            yield one, read(unpack(*bodies[one.run]))
        except (wire.ReportError, ValueError) as error:
            logger.warning("the report of %s cannot be read again: %s", one.run, error)
            done.unreadable += 1


def _wanted(reports: Mapping[Reported, ParsedReport], parser: Parser) -> dict[Reported, dict[int, float]]:
    """The value of each metric (by its key) that the parser makes of each report."""
    measured = [
        (one, Measured(one.series, report, values))
        for one, report in reports.items()
        if (values := parser.values(report))
    ]
    metrics = resolve_metrics.metrics([found for _, found in measured]) if measured else []
    return {
        one: {its[name]: value for name, value in found.values.items()}
        for (one, found), its in zip(measured, metrics, strict=True)
    }


def _exchange(
    one: Reported, report: ParsedReport, gets: Mapping[int, float], had: Had, batch: _Batch
) -> None:
    """What a run *had* becomes what it *gets*, by the keys of its metrics."""
    old = {sample.metric: sample for sample in had.get((one.series, one.slot), ())}
    known_at, passed = ended_at(report), report.outcome == State.PASSED
    for metric, value in gets.items():
        new = Sampled(one.series, one.slot, metric, 0, known_at, value, passed)
        batch.replace(old.get(metric), new)
    for metric in old.keys() - gets.keys():
        batch.remove(old[metric])


def _keep(batch: _Batch) -> None:
    """Keep what was, and let everything that was made of it be made anew."""
    changed = [*batch.gone, *batch.put]
    if not changed:
        return
    Correction.objects.bulk_create(batch.corrections)
    mark_dirty.mark({(one.series, one.time) for one in changed})
    _unscore(changed)


def _unscore(changed: Sequence[Sampled]) -> None:
    """Forecasts whose truth may be another now find it again."""
    earliest: dict[int, datetime] = {}
    latest: dict[int, datetime] = {}
    for one in changed:
        earliest[one.metric] = min(one.time, earliest.get(one.metric, one.time))
        latest[one.metric] = max(one.time, latest.get(one.metric, one.time))
    for metric, first in earliest.items():
        about = Q(metric=metric, last_time__lt=latest[metric], truth_time__gte=first)
        Forecast.objects.filter(about).update(truth=None, truth_time=None)
