"""Parse reports of programs outside of gridcast, and complete those that leave out what the server knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from monitor.ingest import choose_slots
from monitor.ingest.choose_slots import ChosenSlot, ReportedRun
from monitor.ingest.fast_parser import ParsedReport, parsed
from monitor.ingest.short_reports import ReportedSeries, ShortReport, complete, read
from monitor.models import Series
from monitor.models.series import REPORTED_PROBE
from monitor.series.segments import current_bindings
from reporters import report as wire

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.models.series import SeriesQuerySet

Sent = tuple[bytes, str | None]  # a body, and the reporter whose credential sent it (None: trusted code)


class CompletedReport(NamedTuple):
    """A parsed report, and the body to store."""

    report: ParsedReport
    body: bytes


def parse_sent(
    sent: Mapping[int, Sent], visible: SeriesQuerySet | None, now: datetime
) -> dict[int, CompletedReport | wire.ReportError]:
    """Parse the reports *sent*, each with its sender, and complete the short ones; return a result for each.

    A report is short if it lacks a field. Only series that programs outside of gridcast report have short
    reports: the reporters of other series send every field.
    """
    results: dict[int, CompletedReport | wire.ReportError] = {}
    short: dict[int, ShortReport] = {}
    for number, (body, _) in sent.items():
        try:
            report = read(body)
        except wire.ReportError as error:
            results[number] = error
        else:
            if isinstance(report, ShortReport):
                short[number] = report
            else:
                results[number] = CompletedReport(parsed(report), body)
    series = _series(((each.series, sent[number][1]) for number, each in short.items()), visible)
    known: dict[int, tuple[ShortReport, ReportedSeries]] = {}
    for number, each in short.items():
        key = each.series, sent[number][1]
        if (its := series.get(key)) is not None:
            known[number] = each, its
        else:
            results[number] = _refusal(each, sent[number][1], is_known=key in series)
    return results | _completed(known, now)


def _completed(
    short: Mapping[int, tuple[ShortReport, ReportedSeries]], now: datetime
) -> dict[int, CompletedReport | wire.ReportError]:
    slots = {number: ChosenSlot(each.slot) for number, (each, _) in short.items() if each.slot is not None}
    without = [number for number in short if number not in slots]
    runs = [
        ReportedRun(series.key, each.at(now), each.rid, each.sha256)
        for each, series in (short[number] for number in without)
    ]
    slots |= dict(zip(without, choose_slots.choose(runs, now), strict=True))
    results: dict[int, CompletedReport | wire.ReportError] = {}
    for number, (each, series) in short.items():
        try:
            report = complete(each, series, slots[number].slot, now, slots[number].announced_at)
            results[number] = CompletedReport(parsed(report), wire.to_json(report))
        except wire.ReportError as error:
            results[number] = error
    return results


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
