"""Write reports into the depot, many in few statements: run, raw report, usage and samples of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from monitor.depot import samples, stale
from monitor.depot.engines import engine
from monitor.depot.packing import pack
from monitor.models import Metric, RawReport, Run
from monitor.models.run import Ending, State, end
from monitor.services import segments
from monitor.services.account import account
from reporters import report as wire

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping, Sequence

_CAUSE_CHARACTERS = 200
_CHARACTERS = 100  # of a stage or a resource in the ledger; the raw report has all of it


@dataclass(frozen=True)
class Incoming:
    """A report of a known *series* (its key), and the *body* that it was read from."""

    series: int
    report: wire.Report
    body: bytes


def store(incoming: Sequence[Incoming]) -> list[bool]:
    """Write what is not there yet; of each whether it was new. To be called in a transaction.

    Several may do so at once: rows are locked, and made, in the order of their keys.
    """
    runs = _locked(incoming)
    slots = {one.report.slot for one in incoming}
    there = set(RawReport.objects.filter(run__in=runs, slot__in=slots).values_list("run_id", flat=True))
    new: dict[uuid.UUID, Incoming] = {}
    is_new = []
    for run, one in zip(runs, incoming, strict=True):
        is_new.append(run not in there and run not in new)
        new.setdefault(run, one)
    _write(_with_bindings({run: one for run, one in new.items() if run not in there}))
    return is_new


def _with_bindings(new: Mapping[uuid.UUID, Incoming]) -> Mapping[uuid.UUID, Incoming]:
    """Reporters from before that do not say what their runs were bound to: take what their series are now."""
    untold = {run: one for run, one in new.items() if one.report.bindings is None}
    if not untold:
        return new
    now = segments.bound_now({one.series for one in untold.values()})
    told = {
        run: replace(one, report=replace(one.report, bindings=now.get(one.series, {})))
        for run, one in untold.items()
    }
    return {**new, **told}


def _write(new: Mapping[uuid.UUID, Incoming]) -> None:
    if not new:
        return
    end([_ending(run, one.report) for run, one in new.items()])
    account({run: one.report for run, one in new.items()})
    engine().make_room({one.report.slot for one in new.values()})
    received_at = timezone.now()
    RawReport.objects.bulk_create(_raw(run, one, received_at) for run, one in new.items())
    _write_samples(new.values())
    stale.mark((one.series, one.report.slot) for one in new.values())


def _raw(run: uuid.UUID, one: Incoming, received_at: datetime) -> RawReport:
    packing, packed = pack(one.body)
    return RawReport(
        run_id=run, slot=one.report.slot, received_at=received_at, packing=packing, packed=packed
    )


def _locked(incoming: Sequence[Incoming]) -> list[uuid.UUID]:
    """The key of the run of each, which nobody else may change until the end of the transaction."""
    wanted = {one.report.run: one for one in incoming}
    listed = set(Run.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    unlisted = {run: one for run, one in wanted.items() if run not in listed}
    listed_as = _list(unlisted) if unlisted else {}
    runs = [listed_as.get(one.report.run, one.report.run) for one in incoming]
    list(Run.objects.filter(pk__in=runs).order_by("pk").select_for_update(no_key=True).values_list("pk"))
    return runs


def _list(runs: Mapping[uuid.UUID, Incoming]) -> dict[uuid.UUID, uuid.UUID]:
    """Put *runs* into the ledger, which it did not expect; under which key each is there.

    The key is another one where the series was renamed after the slot had been listed.
    """
    Run.objects.bulk_create(
        [
            Run(
                id=run, series_id=one.series, slot=one.report.slot, due_at=one.report.slot, trigger="reporter"
            )
            for run, one in sorted(runs.items(), key=lambda item: (item[1].series, item[1].report.slot))
        ],
        ignore_conflicts=True,
    )
    made = set(Run.objects.filter(pk__in=runs).values_list("pk", flat=True))
    return {
        run: Run.objects.values_list("pk", flat=True).get(series=one.series, slot=one.report.slot)
        for run, one in runs.items()
        if run not in made
    }


def _ending(run: uuid.UUID, report: wire.Report) -> Ending:
    failure = report.failure
    ran = report.outcome != State.SKIPPED
    return Ending(
        run=run,
        state=State(report.outcome),
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
    # The totals of half a run are no runtimes, and what was measured without a clock took no zero seconds.
    totals = wire.totals(report.stages) if report.outcome == "passed" and report.stages else {}
    sums = [wire.MetricValue(name, seconds, "seconds") for name, seconds in totals.items()]
    derived = {value.name: value for value in [*stages, *sums]}
    return [*derived.values(), *(metric for metric in report.metrics if metric.name not in derived)]


def _write_samples(incoming: Iterable[Incoming]) -> None:
    told = [(one, found) for one in incoming if (found := values(one.report))]
    its_segment = segments.of_reports([(one.series, one.report) for one, _ in told])
    measured = [
        (segment, one.report, value)
        for segment, (one, found) in zip(its_segment, told, strict=True)
        for value in found
    ]
    metrics = _metrics((segment, value.name, value.unit) for segment, _, value in measured)
    samples.write([_row(metrics[of, value.name], report, value) for of, report, value in measured])


def _row(metric: int, report: wire.Report, value: wire.MetricValue) -> samples.Row:
    return samples.Row(metric, report.slot, ended_at(report), value.value, report.outcome == State.PASSED)


def _metrics(wanted: Iterable[tuple[int, str, str]]) -> Mapping[tuple[int, str], int]:
    """The keys of metrics by segment and name; of *wanted* (segment, name, unit) those that are missing are
    made."""
    units = {(segment, name): unit for segment, name, unit in wanted}

    def known() -> dict[tuple[int, str], int]:
        those = Metric.objects.filter(segment__in={segment for segment, _ in units}).order_by()
        return {(of, name): key for of, name, key in those.values_list("segment_id", "name", "pk")}

    found = known()
    missing = sorted(units.keys() - found.keys())
    if missing:
        Metric.objects.bulk_create(
            [Metric(segment_id=of, name=name, unit=units[of, name]) for of, name in missing],
            ignore_conflicts=True,
        )
        found = known()
    return found
