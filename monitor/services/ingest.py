"""Take a report into the depot: idempotent, all or nothing, answered after commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import DataError, transaction
from django.utils import timezone

from monitor.depot import samples
from monitor.models import Metric, RawReport, Run, Segment, Series
from monitor.models.run import REPORTED, State
from monitor.services import segments
from monitor.services.account import account
from reporters import report as wire

if TYPE_CHECKING:
    import uuid

_CAUSE_CHARACTERS = 200
_CHARACTERS = 100  # of a stage or a resource in the ledger; the raw report has all of it


@dataclass(frozen=True)
class Receipt:
    """What became of a report. With a receipt that is *accepted*, its sender may forget it."""

    run: uuid.UUID | None
    accepted: bool
    duplicate: bool = False
    error: str = ""


def ingest(body: bytes) -> Receipt:
    """Store one report. Delivering it twice stores it once.

    Raises:
        DatabaseError: the depot is away; nothing was stored, send it again.
    """
    try:
        report = wire.from_json(body)
    except wire.ReportError as error:
        return Receipt(run=None, accepted=False, error=str(error))
    series = _series(report)
    if series is None:
        return Receipt(report.run, accepted=False, error=f"there is no series {report.series!r}")
    try:
        with transaction.atomic():
            stored = _store(series, report, body)
    except (DataError, OverflowError) as error:
        return Receipt(report.run, accepted=False, error=f"the depot cannot hold it: {error}")
    return Receipt(report.run, accepted=True, duplicate=not stored)


def _series(report: wire.Report) -> Series | None:
    """Whose run it is. A series may have got another name since its run was put into the ledger."""
    run = Run.objects.filter(pk=report.run).select_related("series").first()
    return run.series if run else Series.objects.filter(name=report.series).first()


def _store(series: Series, report: wire.Report, body: bytes) -> bool:
    """Write run, raw report and samples; False if this run's report is there already."""
    Run.objects.bulk_create(
        [Run(id=report.run, series=series, slot=report.slot, due_at=report.slot, trigger="reporter")],
        ignore_conflicts=True,
    )
    run = Run.objects.select_for_update().get(series=series, slot=report.slot)
    if run.state in REPORTED and RawReport.objects.filter(run=run).exists():
        return False
    _end(run, report)
    account(run, report)
    RawReport.objects.create(run=run, received_at=timezone.now(), body_gzip=RawReport.compress(body))
    _write_samples(series, report)
    return True


def _end(run: Run, report: wire.Report) -> None:
    failure = report.failure
    ran = report.outcome != State.SKIPPED
    Run.objects.all().move(
        [run.pk],
        report.outcome,  # type: ignore[arg-type]  # the wire format knows no other outcomes than State
        cause=f"reported by {report.reporter}"[:_CAUSE_CHARACTERS],
        reason=report.reason,
        stage=failure.stage[:_CHARACTERS] if failure else "",
        failed_resource=(failure.resource or "")[:_CHARACTERS] if failure else "",
        started_at=report.started_at if ran else None,
        ended_at=ended_at(report) if ran else None,
    )


def ended_at(report: wire.Report) -> datetime:
    return report.started_at + timedelta(seconds=report.seconds)


def values(report: wire.Report) -> list[wire.MetricValue]:
    """Every number of a report: its stages, its own metrics and, of a passed run, its totals.

    None of a run that was skipped: its cleanup is no measurement.
    """
    if report.outcome == State.SKIPPED:
        return []
    stages = [
        wire.MetricValue(f"stage.{stage.name}.seconds", stage.seconds, "seconds") for stage in report.stages
    ]
    passed = report.outcome == "passed"  # the totals of half a run are no runtimes
    totals = wire.totals(report.stages) if passed else {}
    sums = [wire.MetricValue(name, seconds, "seconds") for name, seconds in totals.items()]
    derived = {value.name: value for value in [*stages, *sums]}
    return [*derived.values(), *(metric for metric in report.metrics if metric.name not in derived)]


def _write_samples(series: Series, report: wire.Report) -> None:
    found = values(report)
    if not found:
        return
    ids = _metric_ids(segments.of_report(series, report), found)
    known_at = ended_at(report)
    passed = report.outcome == "passed"
    samples.write(
        [samples.Row(ids[value.name], report.slot, known_at, value.value, passed) for value in found]
    )


def _metric_ids(segment: Segment, found: list[wire.MetricValue]) -> dict[str, int]:
    names = [value.name for value in found]

    def known() -> dict[str, int]:
        return dict(Metric.objects.filter(segment=segment, name__in=names).values_list("name", "pk"))

    ids = known()
    if len(ids) < len(names):
        missing = [value for value in found if value.name not in ids]
        Metric.objects.bulk_create(
            [Metric(segment=segment, name=value.name, unit=value.unit) for value in missing],
            ignore_conflicts=True,
        )
        ids = known()
    return ids
