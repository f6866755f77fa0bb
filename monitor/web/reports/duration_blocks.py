"""Tables and figures of durations: stages, totals, and their distributions, beside the published numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from monitor.analysis.performance.describe import QUANTILE_SHARES, ColumnDescription
from monitor.analysis.performance.passed_runs import TOTALS
from monitor.analysis.performance.tables import UNDEFINED, class_label, label, number_text, percent_text
from monitor.web.reports import svg
from monitor.web.reports.blocks import PUBLISHED, Block, table_block
from monitor.web.reports.published_numbers import GRIDS, PublishedDuration

if TYPE_CHECKING:
    from monitor.analysis.performance.series_statistics import SeriesStatistics
    from monitor.analysis.performance.sigma_histogram import SigmaClass, SigmaHistogram
    from monitor.web.reports.study_report import StudyReport

GATHER, PRECO = "gather", "preco"  # whose durations were published
_TITLES = {GATHER: "Gather", PRECO: "PreCo"}
_FIGURES = ("Mean", "Min", "Max", "Std. dev.", "CV")


def stage_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield for each series the statistics of its stages, and the stages that cause the fluctuation."""
    for statistics in report.statistics.values():
        if not statistics.stages:
            continue
        yield _stages(statistics)
        yield _quantiles(statistics)
        if statistics.variance_shares:
            yield _variance_shares(statistics)
        if published := _published(report, statistics.series, of_totals=False):
            title = f"Stages of {statistics.series} beside those of {_owner(report, statistics.series)}"
            yield _beside(f"{title}{unit(report)}", "Stage", statistics.stages, published, report.scale)
            yield _means(report, statistics.stages, published, f"{title}: mean durations{unit(report)}")


def total_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield the table of the totals of all series, and those of Gather beside the published numbers."""
    rows = [
        (statistics.series, label(metric), *_figures(found))
        for statistics in report.statistics.values()
        for metric, found in statistics.totals.items()
    ]
    if rows:
        yield table_block("Totals as measured, seconds", ("Series", "Total", "n", *_FIGURES), rows, texts=1)
    for statistics in report.statistics.values():
        if published := _published(report, statistics.series, of_totals=True):
            title = f"Totals of {statistics.series} beside those of {_owner(report, statistics.series)}"
            yield _beside(f"{title}{unit(report)}", "Total", statistics.totals, published, report.scale)
            yield _means(report, statistics.totals, published, f"{title}: mean durations{unit(report)}")


def distribution_blocks(report: StudyReport) -> Iterator[Block]:
    """Yield the histograms of the totals of each series in standard deviations from their mean."""
    rows = []
    for statistics in report.statistics.values():
        filled = {name: found for name, found in statistics.histograms.items() if found.classes}
        rows += [
            (statistics.series, label(name), str(found.n), *_spread(found), UNDEFINED)
            for name, found in statistics.histograms.items()
        ]
        if filled:
            title = (
                f"Runs of {statistics.series} by the distance of their totals from the mean, in standard "
                "deviations; classes are half a standard deviation wide"
            )
            panels = [
                (label(name), f"{found.n} runs, skewness {number_text(found.skewness)}", found)
                for name, found in filled.items()
            ]
            yield Block(title, svg=svg.histograms(panels, title))
            yield _classes(statistics.series, filled)
    if rows:
        headings = ("Series", "Total", "n", "Mean, s", "Std. dev., s", "Skewness", PUBLISHED)
        yield table_block("Skewness of the totals", headings, rows, texts=1)


def _spread(found: SigmaHistogram) -> tuple[str, str, str]:
    return number_text(found.mean), number_text(found.stdev), number_text(found.skewness)


def _figures(found: ColumnDescription) -> tuple[str, ...]:
    return (str(found.n), *map(number_text, (found.mean, found.min, found.max, found.stdev, found.cv)))


def _stages(statistics: SeriesStatistics) -> Block:
    shares = statistics.variance_shares
    rows = [
        (label(name), *_figures(found), percent_text(shares.get(name)))
        for name, found in statistics.stages.items()
    ]
    headings = ("Stage", "n", *_FIGURES, "Share of variance")
    return table_block(f"Stages of {statistics.series} as measured, seconds", headings, rows)


def _quantiles(statistics: SeriesStatistics) -> Block:
    rows = [
        (
            label(name),
            *(number_text(found.quantiles.get(share)) for share in QUANTILE_SHARES),
            number_text(found.skewness),
        )
        for name, found in {**statistics.stages, **statistics.totals}.items()
    ]
    headings = ("Stage", *(f"{100 * share:.0f} %" for share in QUANTILE_SHARES), "Skewness")
    return table_block(f"Quantiles of {statistics.series} as measured, seconds", headings, rows)


def _variance_shares(statistics: SeriesStatistics) -> Block:
    shares = statistics.variance_shares
    percents = [100 * share for share in shares.values()]
    title = (
        f"Share of each stage of {statistics.series} in the variance of total (i), percent, "
        f"in {statistics.complete_runs} runs with all stages"
    )
    column = svg.BarColumn("share", "here", percents, [percent_text(share) for share in shares.values()])
    return Block(title, svg=svg.bars([label(name) for name in shares], [column], title))


def _published(report: StudyReport, series: str, *, of_totals: bool) -> dict[str, PublishedDuration]:
    """Return the published durations that stand beside *series*; empty if none do."""
    if report.grid is None or report.probe_of[series] not in _TITLES:
        return {}
    grid = GRIDS[report.grid]
    durations = grid.durations if report.probe_of[series] == GATHER else grid.preco
    return {name: found for name, found in durations.items() if (name in TOTALS) == of_totals}


def _owner(report: StudyReport, series: str) -> str:
    return f"{_TITLES[report.probe_of[series]]} on {_grid(report)}"


def _beside(
    title: str,
    heading: str,
    described: Mapping[str, ColumnDescription],
    published: Mapping[str, PublishedDuration],
    scale: float,
) -> Block:
    """Return the table of *described*, with durations times *scale*, beside *published*.

    It has the metrics of both.
    """
    rows = []
    for name in dict.fromkeys([*described, *published]):
        here, there = described.get(name, ColumnDescription(0)), published.get(name)
        own = [None if x is None else scale * x for x in (here.mean, here.min, here.max, here.stdev)]
        other = [*there, there.cv] if there else [None] * len(_FIGURES)
        cells = [number_text(value) for pair in zip([*own, here.cv], other, strict=True) for value in pair]
        rows.append((label(name), *cells))
    headings = [text for figure in _FIGURES for text in (figure, PUBLISHED)]
    return table_block(title, (heading, *headings), rows)


def _means(
    report: StudyReport,
    described: Mapping[str, ColumnDescription],
    published: Mapping[str, PublishedDuration],
    title: str,
) -> Block:
    names = list(dict.fromkeys([*described, *published]))
    here = [
        report.scale * found.mean if (found := described.get(name)) and found.mean is not None else None
        for name in names
    ]
    there = [published[name].mean if name in published else None for name in names]
    columns = [
        svg.BarColumn("here", "here", here, [number_text(value) for value in here]),
        svg.BarColumn(f"{_grid(report)}, published", "published", there, [number_text(x) for x in there]),
    ]
    return Block(title, svg=svg.bars([label(name) for name in names], columns, title))


def _classes(series: str, histograms: Mapping[str, SigmaHistogram]) -> Block:
    """Return the table of the classes that one of the *histograms* of *series* has."""
    found = {
        (each.lower, each.upper): each for histogram in histograms.values() for each in histogram.classes
    }
    ordered = sorted(found.values(), key=_position)
    counts = {
        name: {(each.lower, each.upper): each.count for each in histogram.classes}
        for name, histogram in histograms.items()
    }
    rows = [
        (class_label(each), *(str(own.get((each.lower, each.upper), 0)) for own in counts.values()))
        for each in ordered
    ]
    title = f"Runs of {series} by class, in standard deviations from the mean"
    return table_block(title, ("Class", *map(label, histograms)), rows)


def _position(found: SigmaClass) -> float:
    return float("-inf") if found.lower is None else found.lower


def _grid(report: StudyReport) -> str:
    return GRIDS[report.grid].title if report.grid else ""


def unit(report: StudyReport) -> str:
    if report.scale == 1:
        return ", seconds"
    return f", seconds of the grid (measured seconds times {report.scale:g})"
