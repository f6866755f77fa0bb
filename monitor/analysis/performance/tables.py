"""Lay out the statistics of a series as tables: text for a terminal, ``tabular`` for LaTeX. Pure.

The layout is that of the study of two grids: a row for each stage and for the totals (i), (ii) and (iii).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.analysis.performance.describe import QUANTILE_SHARES, ColumnDescription
from monitor.analysis.performance.sigma_histogram import SigmaClass, SigmaHistogram

if TYPE_CHECKING:
    from monitor.analysis.performance.matched_changes import MatchedChange
    from monitor.analysis.performance.probe_correlation import Lag, StageCorrelation
    from monitor.analysis.performance.series_statistics import ProbeCorrelation, SeriesStatistics

TOTAL_LABELS = {
    "total.seconds": "Total (i)",
    "total_essential.seconds": "Total (ii)",
    "total_core.seconds": "Total (iii)",
}
UNDEFINED = "-"
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


@dataclass(frozen=True)
class StatisticsTable:
    """A table with a *title*; the first column is aligned left, all others right."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(statistics: SeriesStatistics) -> Iterator[StatisticsTable]:
    """Yield the tables of *statistics*; those without a row are left out."""
    every = (_durations(statistics), _quantiles(statistics), *_histograms(statistics), _changes(statistics))
    yield from (table for table in every if table.rows)
    for found in statistics.correlations:
        for lag, cells in found.by_lag.items():
            if any(cell.r is not None for cell in cells):
                yield correlation_table(found, lag, cells)


def as_text(table: StatisticsTable) -> str:
    rows = [table.headings, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.headings))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return "\n".join([table.title, *lines])


def as_latex(table: StatisticsTable) -> str:
    """Return a ``tabular`` that needs no package, below its title as a comment."""
    columns = "l" + "r" * (len(table.headings) - 1)
    body = [_latex_row(row) for row in table.rows]
    title = " ".join(table.title.split())
    return "\n".join(
        [
            f"% {title}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\hline",
            _latex_row(table.headings),
            r"\hline",
            *body,
            r"\hline",
            r"\end{tabular}",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(latex_escaped(cell) for cell in cells) + r" \\"


def latex_escaped(text: str) -> str:
    """Return *text* as LaTeX that prints it; a line break becomes a space, as a cell has one line."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def label(metric: str) -> str:
    """Return the name of the row of *metric*: ``Stage data``, ``Total (ii)``."""
    stage = metric.removeprefix("stage.").removesuffix(".seconds")
    return TOTAL_LABELS.get(metric) or stage.replace("_", " ").capitalize()


def _durations(statistics: SeriesStatistics) -> StatisticsTable:
    rows = [
        (
            label(name),
            str(found.n),
            *map(number_text, (found.mean, found.min, found.max, found.stdev, found.cv)),
        )
        for name, found in _described(statistics)
    ]
    headings = ("Stage", "n", "Mean", "Min", "Max", "Std. dev.", "CV")
    return StatisticsTable("Durations, seconds", headings, rows)


def _quantiles(statistics: SeriesStatistics) -> StatisticsTable:
    rows = []
    for name, found in _described(statistics):
        share = statistics.variance_shares.get(name)
        quantiles = (found.quantiles.get(each) for each in QUANTILE_SHARES)
        is_whole = name == "total.seconds" and statistics.variance_shares
        shown = "100.0 %" if is_whole else percent_text(share)
        rows.append((label(name), *map(number_text, quantiles), number_text(found.skewness), shown))
    quantile_headings = (f"{100 * each:.0f} %" for each in QUANTILE_SHARES)
    title = f"Quantiles, seconds; share of the variance of total (i) in {statistics.complete_runs} runs"
    return StatisticsTable(title, ("Stage", *quantile_headings, "Skewness", "Variance"), rows)


def _described(statistics: SeriesStatistics) -> list[tuple[str, ColumnDescription]]:
    return [*statistics.stages.items(), *statistics.totals.items()]


def _histograms(statistics: SeriesStatistics) -> Iterator[StatisticsTable]:
    for name, found in statistics.histograms.items():
        title = (
            f"{label(name)} in standard deviations from the mean: {number_text(found.mean)} s, "
            f"standard deviation {number_text(found.stdev)} s, skewness {number_text(found.skewness)}"
        )
        rows = [(class_label(each), str(each.count), _share(each, found)) for each in found.classes]
        yield StatisticsTable(title, ("Class", "Runs", "Share"), rows)


def class_label(found: SigmaClass) -> str:
    if found.lower is None:
        return f"below {found.upper:+.1f}"
    return (
        f"{found.lower:+.1f} and more" if found.upper is None else f"{found.lower:+.1f} to {found.upper:+.1f}"
    )


def _share(found: SigmaClass, histogram: SigmaHistogram) -> str:
    return percent_text(found.count / histogram.n)


def _changes(statistics: SeriesStatistics) -> StatisticsTable:
    rows = [
        (label(name), *_change_cells(change))
        for name, changes in statistics.change_points.items()
        for change in changes
    ]
    return StatisticsTable(
        "Change points", ("Total", "From the run at (UTC)", "Before", "After", "Recorded changes"), rows
    )


def _change_cells(change: MatchedChange) -> tuple[str, str, str, str]:
    point = change.point
    recorded = "; ".join(f"{each.text} ({each.time:%Y-%m-%d %H:%M})" for each in change.recorded)
    since = f"{point.first_after:%Y-%m-%d %H:%M}"
    return since, number_text(point.before), number_text(point.after), recorded or "none"


def correlation_table(
    found: ProbeCorrelation, lag: Lag, cells: Sequence[StageCorrelation]
) -> StatisticsTable:
    probe_metrics = list(dict.fromkeys(cell.probe for cell in cells))
    rows: dict[str, list[str]] = {}
    for cell in cells:
        text = UNDEFINED if cell.r is None else f"{cell.r:+z.2f} ({cell.n})"
        rows.setdefault(cell.application, [label(cell.application)]).append(text)
    title = f"Correlation with {found.probe}, {lag}: Pearson's r (pairs of runs)"
    return StatisticsTable(title, ("Stage", *map(label, probe_metrics)), list(rows.values()))


def percent_text(share: float | None) -> str:
    """Return *share* of 1 in percent; ``UNDEFINED`` for None."""
    return UNDEFINED if share is None else f"{100 * share:z.1f} %"


def number_text(value: float | None) -> str:
    """Format *value* with two decimals, or with three significant digits if it is smaller than 1."""
    if value is None:
        return UNDEFINED
    return f"{value:.2f}" if value == 0 or abs(value) >= 1 else f"{value:.3g}"
