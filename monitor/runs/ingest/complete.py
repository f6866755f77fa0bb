"""Parse reports of programs outside of gridcast, and complete those that leave out what the server knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from monitor.depot.series.segments import current_bindings
from monitor.models import Series
from monitor.models.series import REPORTED_PROBE
from monitor.runs.ingest.choose_slots import ChosenSlot, ReportedRun, SlotChooser
from monitor.runs.ingest.fast_parser import ParsedReport, parsed
from monitor.runs.ingest.plausible_times import AHEAD, time_error
from monitor.runs.ingest.short_reports import ReportedSeries, ShortReport, complete, read
from reporters import report as wire

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet

Sent = tuple[bytes, str | None]  # a body, and the reporter whose credential sent it (None: trusted code)


class OwnSlot(NamedTuple):
    """A slot that this transaction gives to a run for the first time; *name*: see ``record_names``."""

    slot: datetime
    is_chosen: bool
    name: tuple[int, str] | None


class CompletedReport(NamedTuple):
    """A parsed report, the body to store, and the slot that the run got now; None: it has one already."""

    report: ParsedReport
    body: bytes
    own: OwnSlot | None = None


def parse_sent(
    sent: Mapping[int, Sent],
    visible: SeriesQuerySet | None,
    now: datetime,
    whole: Iterable[ParsedReport],
) -> dict[int, CompletedReport | wire.ReportError]:
    """Parse the reports *sent*, each with its sender, and complete the short ones; return a result for each.

    A report is short if it lacks a field. Only series that programs outside of gridcast report have short
    reports: the reporters of other series send every field. The slots of the reports *whole*, which the
    caller stores too, are taken. Until the end of the transaction the series of short reports are locked
    (``SlotChooser``).
    """
    results: dict[int, CompletedReport | wire.ReportError] = {}
    short: dict[int, ShortReport] = {}
    for number, (body, _) in sent.items():
        try:
            report = read(body)
            if isinstance(report, ShortReport):
                short[number] = report
            else:
                results[number] = CompletedReport(parsed(report), body)
        except wire.ReportError as error:
            results[number] = error
    if not short:
        return results
    series = _series(((each.series, sent[number][1]) for number, each in short.items()), visible)
    known: dict[int, tuple[ShortReport, ReportedSeries]] = {}
    for number, each in short.items():
        key = each.series, sent[number][1]
        if (its := series.get(key)) is not None:
            known[number] = each, its
        else:
            results[number] = _refusal(each, sent[number][1], is_known=key in series)
    others = [each.report for each in results.values() if isinstance(each, CompletedReport)]
    return results | _completed(known, now, [*whole, *others])


def _completed(
    short: Mapping[int, tuple[ShortReport, ReportedSeries]], now: datetime, whole: Iterable[ParsedReport]
) -> dict[int, CompletedReport | wire.ReportError]:
    """Complete the reports *short*: first those that name their slots, so that others do not get these.

    A report that is refused takes no slot, and for one with an implausible start none is looked for.
    """
    results: dict[int, CompletedReport | wire.ReportError] = {}
    runs: dict[int, ReportedRun] = {}
    for number, (each, series) in short.items():
        at = each.at(now)
        if error_text := time_error("started_at", at, now + AHEAD):
            results[number] = wire.MalformedReport(error_text)
            continue
        is_dated = each.slot is None and each.started_at is not None
        runs[number] = ReportedRun(series.key, at, is_dated, each.rid, each.sha256)
    plausible = {number: short[number] for number in runs}
    named = {(series.key, each.slot) for each, series in plausible.values() if each.slot is not None}
    keys = {series.name: series.key for _, series in plausible.values()}
    chooser = SlotChooser(runs.values(), named)
    for report in whole:
        if report.series in keys:
            chooser.take(ReportedRun(keys[report.series], report.slot, False, "", ""), report.slot)
    for number in sorted(plausible, key=lambda number: plausible[number][0].slot is None):
        each, series = plausible[number]
        try:
            results[number] = _completed_one(each, series, runs[number], chooser, now)
        except wire.ReportError as error:
            results[number] = error
    return results


def _completed_one(
    short: ShortReport, series: ReportedSeries, run: ReportedRun, chooser: SlotChooser, now: datetime
) -> CompletedReport:
    choice = chooser.choose(run) if short.slot is None else ChosenSlot(short.slot)
    if short.slot is not None and (other := chooser.other_owner(run, short.slot)):
        raise wire.MalformedReport(
            f"slot: {wire.rfc3339(short.slot)} is that of the id {other!r}: leave it out, and the run of the"
            f" id {run.rid!r} gets a slot of its own"
        )
    report = complete(short, series, choice.slot, now, choice.announced_at)
    own = None
    if not choice.is_named:
        own = OwnSlot(choice.slot, short.slot is None, chooser.new_name(run, choice.slot))
    chooser.take(run, choice.slot)
    return CompletedReport(parsed(report), wire.to_json(report), own)


def _series(
    names: Iterable[tuple[str, str | None]], visible: SeriesQuerySet | None
) -> dict[tuple[str, str | None], ReportedSeries | None]:
    """Return the series that each sender may report, by (name, sender); None: a reporter measures it.

    Series that are unknown, not *visible* or assigned to another reporter are left out.
    """
    wanted = set(names)
    if not wanted:
        return {}
    by_name = (Series.objects.all() if visible is None else visible).filter(
        name__in={name for name, _ in wanted}
    )
    rows = {row["name"]: row for row in by_name.values("pk", "name", "probe", "parameters", "reporter__name")}
    bound = current_bindings([row["pk"] for row in rows.values()])
    return {
        (name, sender): None
        if row["probe"] != REPORTED_PROBE
        else ReportedSeries(
            row["pk"], name, row["reporter__name"], row["parameters"], bound.get(row["pk"], {})
        )
        for name, sender in wanted
        if (row := rows.get(name)) is not None and sender in (None, row["reporter__name"])
    }


def _refusal(short: ShortReport, sender: str | None, *, is_known: bool) -> wire.MalformedReport:
    if not is_known:
        return wire.MalformedReport(unknown_series(short.series, sender))
    return wire.MalformedReport(
        f"{short.lacks}; only a series with 'probe: {REPORTED_PROBE}' in the grid file has short reports, and"
        f" {short.series!r} is measured by its reporter"
    )


def unknown_series(series: str, sender: str | None) -> str:
    """Return the same text for every series that *sender* may not report, whether it exists or not."""
    if sender is None:
        return f"there is no series {series!r}"
    return f"series: no series {series!r} is assigned to the reporter {sender!r} at this slot"
