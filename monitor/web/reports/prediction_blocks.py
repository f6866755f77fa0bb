"""Tables and figures of an application and its probes: correlations, normalised totals, forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from forecasting.evaluation.published_predictions import METRICS
from forecasting.evaluation.study import EMPTY_COLUMN
from forecasting.evaluation.study_table import compared
from monitor.analysis.performance.probe_correlation import Lag, StageCorrelation
from monitor.analysis.performance.tables import UNDEFINED, correlation_table, label
from monitor.web.reports import svg
from monitor.web.reports.blocks import PUBLISHED, Block, table_block
from monitor.web.reports.duration_blocks import GATHER, PRECO, unit
from monitor.web.reports.published_numbers import GRIDS, TERAGRID, PublishedGrid

if TYPE_CHECKING:
    from monitor.analysis.performance.series_statistics import ProbeCorrelation
    from monitor.web.reports.study_report import StudyReport


def correlation_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield for each application and probe the correlation of each metric with the same one of the probe."""
    for application, found in _correlations(report):
        grid = _published(report, application, found.probe)
        rows = _same_metrics(found, grid.correlations if grid else {})
        if rows:
            heading = f"{grid.title}, {PUBLISHED}" if grid else PUBLISHED
            headings = ("Stage", *(lag.capitalize() for lag in Lag), heading)
            title = f"Correlation of {application} with {found.probe}: Pearson's r (pairs of runs)"
            yield table_block(title, headings, rows)


def matrix_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield the correlations of all stages of applications with all stages of probes, by lag."""
    for application, found in _correlations(report):
        for lag, cells in found.by_lag.items():
            if any(cell.r is not None for cell in cells):
                table = correlation_table(found, lag, cells)
                title = f"{application}: {table.title[0].lower()}{table.title[1:]}"
                yield Block(title, table)


def _correlations(report: StudyReport) -> Iterator[tuple[str, ProbeCorrelation]]:
    for statistics in report.of_probe(report.request.application):
        for found in statistics.correlations:
            yield statistics.series, found


def _published(report: StudyReport, application: str, probe: str) -> PublishedGrid | None:
    """Return the grid whose correlations stand beside those of *application* with *probe*; None: none do."""
    if report.grid is None or (report.probe_of[application], report.probe_of[probe]) != (PRECO, GATHER):
        return None
    return GRIDS[report.grid]


def _same_metrics(found: ProbeCorrelation, published: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Return a row for each metric that both have: a cell for each lag, and the published number."""
    by_lag = {
        lag: {cell.application: cell for cell in cells if cell.application == cell.probe}
        for lag, cells in found.by_lag.items()
    }
    names = list(dict.fromkeys(name for cells in by_lag.values() for name in cells))
    return [
        (
            label(name),
            *(_correlation_text(by_lag.get(lag, {}).get(name)) for lag in Lag),
            f"{published[name]:+.2f}" if name in published else UNDEFINED,
        )
        for name in names
    ]


def _correlation_text(cell: StageCorrelation | None) -> str:
    if cell is None:
        return UNDEFINED
    return f"{UNDEFINED if cell.r is None else f'{cell.r:+z.2f}'} ({cell.n})"


def normalised_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield a chart of each total of each application and probe, both in standard deviations."""
    for pair in report.pairs:
        title = (
            f"{label(pair.metric)} of {pair.application.series} ({pair.application.n} runs) and "
            f"{pair.probe.series} ({pair.probe.n} runs) over time, normalised: in standard "
            "deviations from the mean"
        )
        yield Block(title, svg=svg.lines([("here", pair.application), ("other", pair.probe)], title))


def forecast_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield the table of predictions beside the published one, all of whose columns it has."""
    columns = {metric: report.forecasts.columns.get(metric, EMPTY_COLUMN) for metric in METRICS}
    rows: list[Sequence[str]] = []
    for row in compared(columns, report.scale):
        rows.append((row.label, "here", *row.here))
        rows.append(("", PUBLISHED.lower(), *row.published))
        rows.append(("", "difference", *row.difference))
    rows.append(("Runs", "here", *(str(column.n) for column in columns.values())))
    title = (
        f"Predictions of {report.request.application} from {report.request.probe}, beside those of PreCo "
        f"from Gather on {TERAGRID.title}: mean relative errors in percent of the actual value (coefficient "
        f"of variation of the errors, percent){unit(report)}"
    )
    yield table_block(title, ("", "", *map(label, columns)), rows, texts=1)
