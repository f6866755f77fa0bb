"""Parse reports of programs outside of gridcast, and complete those that leave out what the server knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from monitor.depot.series.segments import current_bindings
from monitor.models import Series
from monitor.models.series import REPORTED_PROBE
from monitor.runs.ingest.choose_slots import ChosenSlot, ReportedRun, SlotChooser
from monitor.runs.ingest.fast_parser import ParsedReport, parsed
from monitor.runs.ingest.plausible_times import AHEAD, time_error
from monitor.runs.ingest.short_reports import ReportedSeries, ShortReport, complete, read
from monitor.runs.ingest.submission import OwnSlot, Submission
from reporters import report as wire

if TYPE_CHECKING:
    from monitor.models.series import SeriesQuerySet


def read_all(
    submissions: Iterable[Submission],
    visible: SeriesQuerySet | None,
    now: datetime,
    whole: Iterable[ParsedReport],
) -> None:
    """Read the reports of *submissions*, complete the short ones, and refuse those that are malformed.

    A report is short if it lacks a field. Only series that programs outside of gridcast report have short
    reports: the reporters of other series send every field. The slots of the reports *whole*, which the
    caller stores too, are taken. Until the end of the transaction the series of short reports are locked
    (``SlotChooser``).
    """
    short: dict[Submission, ShortReport] = {}
    others: list[ParsedReport] = []
    for each in submissions:
        try:
            report = read(each.body)
            if isinstance(report, ShortReport):
                short[each] = report
            else:
                each.parsed = parsed(report)
                others.append(each.parsed)
        except wire.ReportError as error:
            each.refuse(str(error))
    series = _series(((report.series, each.sender) for each, report in short.items()), visible)
    known: dict[Submission, tuple[ShortReport, ReportedSeries]] = {}
    for each, report in short.items():
        key = report.series, each.sender
        if (its := series.get(key)) is not None:
            known[each] = report, its
        else:
            each.refuse(_refusal(report, each.sender, is_known=key in series))
    _complete(known, now, [*whole, *others])


def _complete(
    short: Mapping[Submission, tuple[ShortReport, ReportedSeries]],
    now: datetime,
    whole: Iterable[ParsedReport],
) -> None:
    """Complete the reports *short*: first those that name their slots, so that others do not get these.

    A report that is refused takes no slot, and for one with an implausible start none is looked for.
    """
    runs: dict[Submission, ReportedRun] = {}
    for each, (report, series) in short.items():
        at = report.at(now)
        if error_text := time_error("started_at", at, now + AHEAD):
            each.refuse(error_text)
            continue
        is_dated = report.slot is None and report.started_at is not None
        runs[each] = ReportedRun(series.key, at, is_dated, report.rid, report.sha256)
    if not runs:
        return
    plausible = {each: short[each] for each in runs}
    named = {(series.key, report.slot) for report, series in plausible.values() if report.slot is not None}
    keys = {series.name: series.key for _, series in plausible.values()}
    chooser = SlotChooser(runs.values(), named)
    for other in whole:
        if other.series in keys:
            chooser.take(ReportedRun(keys[other.series], other.slot, False, "", ""), other.slot)
    for each in sorted(plausible, key=lambda each: plausible[each][0].slot is None):
        try:
            _complete_one(each, *plausible[each], runs[each], chooser, now)
        except wire.ReportError as error:
            each.refuse(str(error))


def _complete_one(
    submission: Submission,
    short: ShortReport,
    series: ReportedSeries,
    run: ReportedRun,
    chooser: SlotChooser,
    now: datetime,
) -> None:
    choice = chooser.choose(run) if short.slot is None else ChosenSlot(short.slot)
    if short.slot is not None and (other := chooser.other_owner(run, short.slot)):
        raise wire.MalformedReport(
            f"slot: {wire.rfc3339(short.slot)} is that of the id {other!r}: leave it out, and the run of the"
            f" id {run.rid!r} gets a slot of its own"
        )
    report = complete(short, series, choice.slot, now, choice.announced_at)
    if not choice.is_named:
        is_chosen = short.slot is None
        submission.own = OwnSlot(choice.slot, is_chosen, chooser.new_name(run, choice.slot))
    chooser.take(run, choice.slot)
    submission.parsed, submission.body = parsed(report), wire.to_json(report)


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


def _refusal(short: ShortReport, sender: str | None, *, is_known: bool) -> str:
    if not is_known:
        return unknown_series(short.series, sender)
    return (
        f"{short.lacks}; only a series with 'probe: {REPORTED_PROBE}' in the grid file has short reports, and"
        f" {short.series!r} is measured by its reporter"
    )


def unknown_series(series: str, sender: str | None) -> str:
    """Return the same text for every series that *sender* may not report, whether it exists or not."""
    if sender is None:
        return f"there is no series {series!r}"
    return f"series: no series {series!r} is assigned to the reporter {sender!r} at this slot"
