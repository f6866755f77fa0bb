"""Lay out what the depot knows about storage beside the published numbers: sections of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monitor.web.reports.blocks import Block, Section, numbered, table_block
from monitor.web.reports.published_storage import (
    APPLICATIONS,
    CHARACTERISATION_ERRATA,
    FLASH_ERRORS,
    FURTHER_THROTTLING,
    MEAN_ERRORS,
    PREDICTION_ERRATA,
    PREDICTION_ERRORS,
    RAID_READERS,
    SWEEP_BEST,
    SWEEP_DAYS,
    SWEEP_FACTORS,
    SWEEP_OUTLIERS,
    SWEEP_PASSES,
    SWEEP_RUN_SECONDS,
    SWEEP_RUNS,
    THROTTLING,
    THROTTLING_ERRATA,
    VARIATIONS,
    ThrottlingTable,
)
from monitor.web.reports.storage_cells import NOTHING, OURS, csv_cell, difference, number
from monitor.web.reports.storage_rate_blocks import merit_blocks, rate_blocks, rate_paragraphs, values_of

if TYPE_CHECKING:
    from monitor.web.reports.storage_report import StorageReport

_DAY_SECONDS = 86_400.0


def storage_sections(report: StorageReport) -> list[Section]:
    """Return the sections of *report*, their tables numbered; errata end each section."""
    return numbered(
        [
            Section("Sweep", _sweep_paragraphs(), list(_sweep_blocks(report))),
            Section("Rates", list(rate_paragraphs(report)), rate_blocks(report)),
            Section("Figures of merit", [], merit_blocks(report)),
            Section("Applications", [], list(_applications(report))),
            Section("Contradictions: characterisation", CHARACTERISATION_ERRATA, []),
            Section("I/O times elsewhere", _prediction_paragraphs(report), list(_prediction(report))),
            Section("Contradictions: prediction", PREDICTION_ERRATA, []),
            Section("Limits of streams", _throttling_paragraphs(report), list(_throttling(report))),
            Section("Contradictions: limits of streams", THROTTLING_ERRATA, []),
        ]
    )


def _sweep_paragraphs() -> list[str]:
    factors = " x ".join(f"{count} {name}" for name, count in SWEEP_FACTORS.items())
    hours = SWEEP_RUNS * SWEEP_RUN_SECONDS / 3600.0
    share = hours * 3600.0 / (SWEEP_DAYS * _DAY_SECONDS)
    return [
        "A dash stands for a number that was not published; in a row of ours or of an emulated device, for "
        "one that was not measured.",
        f"Published: {factors} x {SWEEP_PASSES} passes = {SWEEP_RUNS:,} runs of {SWEEP_RUN_SECONDS:g} s, "
        f"{hours:.1f} hours in about {SWEEP_DAYS:g} days: {share:.0%} of the time was measuring.",
    ]


def _sweep_blocks(report: StorageReport) -> Iterator[Block]:
    rows = [
        [
            "published",
            SWEEP_BEST,
            f"{SWEEP_RUNS // SWEEP_PASSES:,}",
            str(SWEEP_PASSES),
            f"{SWEEP_RUNS:,}",
            f"{SWEEP_OUTLIERS:,} ({SWEEP_OUTLIERS / SWEEP_RUNS:.1%})",
            NOTHING,
        ]
    ]
    for series, effects in _analyses(report, "effects"):
        flags, choice = effects["flags"], effects["choice"]["levels"]
        rows.append(
            [
                f"{OURS}: {series}",
                ", ".join(f"{factor} {level}" for factor, level in choice.items()),
                f"{effects['cells']:,}",
                str(effects["passes"]),
                f"{flags['values']:,}",
                f"{flags['flagged']:,} ({flags['flagged'] / max(flags['values'], 1):.1%})",
                f"{flags['expected']:.0f}",
            ]
        )
    headings = ["Sweep", "Best", "Combinations", "Passes", "Values", "Outliers", "Expected of noise"]
    yield table_block("Sweeps; of ours, values and outliers after the first pass", headings, rows, texts=1)
    effects_rows = [
        [f"{OURS}: {series}", " x ".join(term["term"]), f"{term['size'] - 1:+.1%}", f"{term['q_value']:.2g}"]
        for series, effects in _analyses(report, "effects")
        for term in sorted(effects["terms"], key=lambda term: -float(term["size"]))[:10]
        if term["is_claimed"]
    ]
    if effects_rows:
        yield table_block(
            "Largest effects of parameters", ["Sweep", "Parameter", "Effect", "q"], effects_rows, texts=1
        )


def _analyses(report: StorageReport, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for verdicts in report.verdicts.values():
        for verdict in verdicts:
            if analysis := verdict.content.get(kind):
                yield verdict.series, analysis


def _applications(report: StorageReport) -> Iterator[Block]:
    rows = [
        [
            application.name,
            NOTHING if application.memory is None else f"{application.memory:,g}",
            f"{application.flash:,g}",
            f"{application.disk:,g}",
            f"{application.disk / application.flash:.1f}",
        ]
        for application in APPLICATIONS
    ]
    headings = ["Application", "Memory s", "Flash s", "Disk s", "Disk / flash"]
    yield table_block("Published: seconds of applications in memory, on flash and on a disk", headings, rows)
    ours = []
    for area in report.areas:
        values = values_of(area)
        if values.keys() & {"lookup", "scan", "search"}:
            ours.append(
                [
                    area.resource.name,
                    area.medium or NOTHING,
                    number(values.get("lookup")),
                    number(values.get("scan"), 1e-6),
                    number(values.get("search")),
                ]
            )
    if ours:
        headings = ["Area", "Medium", "Look-ups/s", "Scan MB/s", "BFS vertices/s"]
        yield table_block("Ours: the probes lookups and em_bfs", headings, ours, texts=1)


def _prediction_paragraphs(report: StorageReport) -> list[str]:
    text = (
        f"Published: MADbench2 by IOR, {len(PREDICTION_ERRORS)} systems; mean absolute errors "
        f"{MEAN_ERRORS.total} % of totals, {MEAN_ERRORS.read} % of reads, {MEAN_ERRORS.write} % of writes."
    )
    if report.elsewhere or report.depot_problem:
        return [text]
    return [text, "No forecast of this depot for a system without a run was scored yet."]


def _prediction(report: StorageReport) -> Iterator[Block]:
    rows = [
        [error.interface, error.system, f"{error.read:+z.2f}", f"{error.write:+z.2f}", f"{error.total:+z.2f}"]
        for error in (*PREDICTION_ERRORS, *FLASH_ERRORS)
    ]
    headings = ["Interface", "System", "Reads %", "Writes %", "Total %"]
    yield table_block("Published: errors of predicted I/O times", headings, rows, texts=1)
    variations = [
        [each.interface, each.system, *(f"{value:.2f}" for value in (*each.madbench, *each.ior))]
        for each in VARIATIONS
    ]
    headings = ["Interface", "System", "MADbench reads", "writes", "total", "IOR reads", "writes", "total"]
    yield table_block("Published: relative standard deviations, per cent", headings, variations, texts=1)
    if report.elsewhere:
        ours = [
            [each.series, str(each.n), f"{100 * each.mean:+z.2f}", f"{100 * each.mean_absolute:.2f}"]
            for each in report.elsewhere
        ]
        headings = ["Series", "Scored", "Mean error %", "Mean absolute error %"]
        yield table_block("Ours: forecasts where the application had never run", headings, ours)


def _throttling_paragraphs(report: StorageReport) -> list[str]:
    text = "Published: seconds of MADbench by writers and readers at once."
    emulated = (
        "Emulated: the same load on our model of the device, in virtual time."
        if report.emulated.times
        else "The emulated devices need a C compiler, which this machine lacks."
    )
    return [f"{text} {emulated}", *FURTHER_THROTTLING]


def _throttling(report: StorageReport) -> Iterator[Block]:
    for table in THROTTLING:
        yield _throttling_block(table, report.emulated.times.get(table.profile, {}))
    yield _readers_block(report.emulated.times.get(RAID_READERS.profile, {}))
    rows = [
        [
            f"{OURS}: {series}",
            analysis["verdict"],
            f"{analysis['gain']['streams'][1]}/{analysis['gain']['streams'][0]}",
            "{saved:.1%} [{low:.1%}, {high:.1%}]".format_map(analysis["gain"]),
        ]
        for series, analysis in _analyses(report, "streams")
    ]
    if rows:
        headings = ["Sweep", "A limit", "Best writers/readers", "Time saved"]
        yield table_block("Ours: sweeps of streams", headings, rows, texts=1)


def _throttling_block(table: ThrottlingTable, emulated: Mapping[tuple[int, int], float]) -> Block:
    default = next(iter(table.seconds.values()))
    headings = ["Writers/readers", "Published s", "Against the first", "Emulated s", "Difference"]
    headings += ["dSdC I/O, wait", "invD I/O, wait", "W I/O, wait", "Outside of the columns"]
    rows = []
    for streams, seconds in table.seconds.items():
        columns = table.columns[streams]
        own = emulated.get(streams)
        rows.append(
            [
                "/".join(map(str, streams)),
                f"{seconds:,.0f}",
                f"{seconds / default - 1:+.1%}",
                number(own),
                difference(own, seconds),
                *(f"{columns[phase]:,}, {columns[phase + 1]:,}" for phase in (0, 2, 4)),
                f"{seconds - sum(columns):,.0f}",
            ]
        )
    title = table.system
    if table.scheduler_seconds:
        title += f"; the best scheduler instead: {table.scheduler_seconds:g} s"
    return table_block(title, headings, rows)


def _readers_block(emulated: Mapping[tuple[int, int], float]) -> Block:
    rows = []
    for readers, slower in RAID_READERS.slower.items():
        own = emulated.get((RAID_READERS.tasks, readers))
        rows.append(
            [
                str(readers),
                f"{slower:+.1%}",
                difference(own, 1.0),
                difference(own, 1.0 + slower),
            ]
        )
    title = (
        f"{RAID_READERS.system}: time by readers, against {RAID_READERS.best} "
        "(published: 1 reader over 13 %, 2 below 2 %)"
    )
    return table_block(title, ["Readers", "Published", "Emulated", "Difference"], rows)


def csv_rows(sections: Sequence[Section]) -> Iterator[Sequence[str | float]]:
    """Yield the rows of all tables; the number and the title of its table are before each row."""
    for section in sections:
        for block in section.blocks:
            if block.table:
                start = (str(block.number), block.title)
                yield (*start, *block.table.headings)
                for row in block.table.rows:
                    yield (*start, *map(csv_cell, row))
