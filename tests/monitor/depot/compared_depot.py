"""Everything that happens to a depot in its depot, done by its services, and to its naive twin alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from datetime import datetime
from itertools import islice

from django.db import connection

from monitor.depot.retention.apply import apply_retention
from monitor.depot.retention.dry_run import preview_retention
from monitor.models import Metric, Series, Suite
from monitor.models.retention_cutoff import DataKind
from monitor.runs.ingest import extract_metrics
from monitor.runs.ingest.reparse import MetricParser, ReparseCounts, reparse
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.depot.depot_model import TOTAL, DepotModel, MetricKey, ParserVariant, RetentionDays
from tests.monitor.depot.sample_model import FIRST, Value

RINGS = (("here", "there"), ("there", "here"))  # the bindings of a run decide its segment
MOST_CALLS = 100  # of a function that continues where it stopped
_EMPTIED = (
    *("monitor_correction", "monitor_sample", "monitor_hourrollup", "monitor_dayrollup", "monitor_dirtyhour"),
    *("monitor_retentioncutoff", "monitor_latestrun", "monitor_rawreport", "monitor_usage", "monitor_run"),
)


class ComparedDepot:
    """Applies changes to a depot and to its model. Each of *series* is the only one of its suite."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.series = {each.name: each for each in series}
        self.model = DepotModel()
        self.version = extract_metrics.VERSION
        self.now = FIRST  # or later: the time of the last retention
        self.metrics: dict[MetricKey, Metric] = {}
        self.stopped_at: datetime | None = None  # the time of an unfinished retention
        with connection.cursor() as cursor:
            for table in _EMPTIED:
                cursor.execute(f"DELETE FROM {table}")

    def metric(self, key: MetricKey) -> Metric | None:
        """Return the metric, None before its first value."""
        if key in self.metrics:
            return self.metrics[key]
        candidates = Metric.objects.filter(segment__series=self.series[key.series], name=TOTAL)
        ring = [list(RINGS[key.segment])]
        metric = next((each for each in candidates.select_related("segment") if _ring(each) == ring), None)
        if metric:
            self.metrics[key] = metric
        return metric

    def ingest(self, key: MetricKey, new: Mapping[datetime, Value]) -> None:
        expected = self.model.ingest(key, new)
        receipts = ingest_all([wire.to_json(_report(key, slot, value)) for slot, value in new.items()])
        # Another report of a run is a conflict while the first one is kept, and a duplicate afterwards.
        assert [receipt.duplicate or receipt.conflict for receipt in receipts] == expected
        assert all(receipt.accepted or receipt.conflict for receipt in receipts)

    def reparse(
        self, reading: ParserVariant, since: datetime, series: Collection[str], at_once: int, batches: int
    ) -> None:
        """Reparse; the process is killed after so many *batches*."""
        self.version += 1
        runs = self.model.to_read(series, since, self.version)[: batches * at_once]
        expected = self.model.reparse(runs, reading, self.version)
        counts = self._reparsed(reading, since, series, at_once, batches)
        assert asdict(counts) == asdict(expected)

    def would_reparse(self, reading: ParserVariant, since: datetime) -> None:
        self.version += 1
        runs = self.model.to_read(self.series, since, self.version)
        expected = deepcopy(self.model).reparse(runs, reading, self.version)
        counts = self._reparsed(reading, since, self.series, 50, MOST_CALLS, dry_run=True)
        assert asdict(counts) == asdict(expected)

    def _reparsed(
        self,
        reading: ParserVariant,
        since: datetime,
        series: Collection[str],
        at_once: int,
        batches: int,
        *,
        dry_run: bool = False,
    ) -> ReparseCounts:
        keys = [self.series[name].pk for name in series]
        parser = MetricParser(self.version, reading.values)
        done = ReparseCounts()
        for counts in islice(
            reparse(since, series=keys, parser=parser, batch=at_once, dry_run=dry_run), batches
        ):
            done = counts
        return done

    def retain(self, now: datetime, keeps: Mapping[str, RetentionDays]) -> None:
        self._keep(now, keeps)
        self.stopped_at = now
        self.end_retention()

    def begin_to_retain(self, now: datetime, keeps: Mapping[str, RetentionDays], pieces: int) -> None:
        """Apply retention; the process is killed after so many *pieces*."""
        self._keep(now, keeps)
        for _ in range(pieces):
            self.stopped_at = now if apply_retention(now, within_seconds=0).later else None

    def end_retention(self) -> None:
        if self.stopped_at:
            done = apply_retention(self.stopped_at)
            assert done.later == ""
            self.stopped_at = None

    def would_retain(self, now: datetime, keeps: Mapping[str, RetentionDays]) -> None:
        self.end_retention()
        _set_retention(keeps)
        expired_rows = {
            (expired.suite, expired.kind): expired.rows for expired in preview_retention(now).expired
        }
        for name, its in keeps.items():
            for kind, since in its.begins(now):
                if kind in {DataKind.REPORTS, DataKind.SAMPLES}:
                    assert expired_rows.get((name, kind), 0) == self.model.too_old(name, kind, since)

    def _keep(self, now: datetime, keeps: Mapping[str, RetentionDays]) -> None:
        _set_retention(keeps)
        self.now = max(now, self.now)
        for name, its in keeps.items():
            for kind, since in its.begins(now):
                self.model.keep(name, kind, since)


def _set_retention(keeps: Mapping[str, RetentionDays]) -> None:
    for name, its in keeps.items():
        days = {f"keep_{kind}_days": number for kind, number in asdict(its).items()}
        Suite.objects.filter(name=name).update(**days)


def _ring(metric: Metric) -> list[list[str]]:
    return [list(names) for names in metric.segment.bindings.values()]


def _report(key: MetricKey, slot: datetime, value: Value) -> wire.Report:
    """Return the report of a run that measured only *value*."""
    passed = circle_report(
        slot,
        series=key.series,
        bindings={"ring": RINGS[key.segment]},
        seconds=(value.known_at - slot).total_seconds(),
        stages=[],
        metrics=[wire.MetricValue(TOTAL, value.value, "seconds")],
    )
    if value.passed:
        return passed
    failure = wire.Failure("transfer_ring", "there", "no route", exit_status=1, stderr_tail="")
    return replace(passed, outcome="failed", reason="no route", failure=failure)
