"""Tables and figures of failures: success rates, categories, and causes by probe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from monitor.analysis.outcomes.counts import SuccessRates
from monitor.analysis.performance.tables import UNDEFINED, percent_text
from monitor.web.reports import svg
from monitor.web.reports.blocks import PUBLISHED, Block, table_block
from monitor.web.reports.duration_blocks import GATHER
from monitor.web.reports.published_numbers import COMBINED, GRIDS
from monitor.web.reports.study_report import CIRCLE

if TYPE_CHECKING:
    from monitor.web.reports.outcomes import ErrorCounts
    from monitor.web.reports.study_report import StudyReport

_MOST_CAUSES = 20  # in a figure; the table has all


def run_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield the table of the series and their runs."""
    rows = []
    for name, rates in report.outcomes.rates.items():
        found = report.statistics.get(name)
        described = (str(found.segment), str(found.runs), str(found.other_runs)) if found else ("-", "0", "-")
        rows.append((name, report.probe_of[name], *described, str(rates.failed)))
    headings = ("Series", "Probe", "Segment", "Passed", "Passed in other segments", "Failed")
    yield table_block("Series and runs", headings, sorted(rows), texts=1)


def error_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield success rates, failures by category, and the error histogram of each probe."""
    errors = list(report.outcomes.errors.values())
    yield _rates(report)
    if any(each.causes for each in errors):
        yield _categories(errors)
    for each in errors:
        if each.causes:
            yield _histogram(each)
            yield _causes(each)


def _rates(report: StudyReport) -> Block:
    published = GRIDS[report.grid].passed if report.grid else {}
    rates = {probe: SuccessRates(0, 0, 0) for probe in report.request.probes if probe in published}
    rates |= {probe: errors.rates for probe, errors in report.outcomes.errors.items()}
    rows = [_rate(probe, own, published.get(probe)) for probe, own in rates.items()]
    if COMBINED in published and report.request.probe == GATHER:
        rows.append(_rate(f"{GATHER} and {CIRCLE}, both of a pair", report.together, published[COMBINED]))
    headings = (
        "Probe",
        "Runs, or pairs of runs",
        "Failed",
        "Excused",
        "Success",
        "Success, adjusted",
        PUBLISHED,
    )
    return table_block("Success rates", headings, rows)


def _rate(name: str, rates: SuccessRates, published: float | None) -> tuple[str, ...]:
    counts = (rates.passed + rates.failed, rates.failed, rates.excused)
    shares = (percent_text(rates.raw), percent_text(rates.adjusted), _whole_percent_text(published))
    return (name, *map(str, counts), *shares)


def _whole_percent_text(published: float | None) -> str:
    """Return the *published* share with the digits that were published."""
    return UNDEFINED if published is None else f"{100 * published:.0f} %"


def _categories(errors: list[ErrorCounts]) -> Block:
    counts = [each.by_category() for each in errors]
    names = sorted(
        {name for own in counts for name in own}, key=lambda name: -sum(own.get(name, 0) for own in counts)
    )
    rows = [(name, *(str(own.get(name, 0)) for own in counts), UNDEFINED) for name in names]
    headings = ("Category", *(each.probe for each in errors), PUBLISHED)
    return table_block("Failed runs by category and probe", headings, rows)


def _histogram(errors: ErrorCounts) -> Block:
    shown = errors.causes[:_MOST_CAUSES]
    title = f"Errors of {errors.probe}: failed runs by cause, {errors.rates.failed} in all"
    if len(shown) < len(errors.causes):
        title += f"; the {len(shown)} most frequent causes"
    column = svg.BarColumn("runs", "other", [float(each.runs) for each in shown], [
        f"{each.runs} ({percent_text(each.runs / errors.rates.failed)})" for each in shown
    ])  # fmt: skip
    return Block(title, svg=svg.bars([each.name or each.title for each in shown], [column], title))


def _causes(errors: ErrorCounts) -> Block:
    rows = [
        (
            each.title,
            each.name or UNDEFINED,
            each.category,
            str(each.runs),
            percent_text(each.runs / errors.rates.failed),
            UNDEFINED,
        )
        for each in errors.causes
    ]
    headings = ("Cause", "Signature", "Category", "Runs", "Share", PUBLISHED)
    return table_block(f"Causes of the failed runs of {errors.probe}", headings, rows, texts=2)
