"""Lay out what the depot knows about storage beside the published numbers: sections of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from monitor.reports.blocks import Block, Section, numbered, table_block
from monitor.reports.published_storage import (
    APPLICATIONS,
    BASELINE_RANDOM_READ,
    CHARACTERISATION_ERRATA,
    DRIVES,
    FLASH_ERRORS,
    FURTHER_THROTTLING,
    MEAN_ERRORS,
    MERITS,
    ONE_DRIVE,
    PREDICTION_ERRATA,
    PREDICTION_ERRORS,
    RAID_READERS,
    RATES,
    SPECIFIED_RANDOM_READ,
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
from monitor.units import significant

if TYPE_CHECKING:
    from monitor.reports.storage_report import StorageReport
    from monitor.storage.areas import StorageArea

NOTHING = "-"
OURS = "ours"
_DAY_SECONDS = 86_400.0


def storage_sections(report: StorageReport) -> list[Section]:
    """Return the sections of *report*, their tables numbered; errata end each section."""
    return numbered(
        [
            Section("Sweep", _sweep_paragraphs(), list(_sweep_blocks(report))),
            Section("Rates", list(_rate_paragraphs(report)), [_rates(report), _efficiency(report)]),
            Section("Figures of merit", [], [_merits(report)]),
            Section("Applications", [], list(_applications(report))),
            Section("Contradictions: characterisation", CHARACTERISATION_ERRATA, []),
            Section("I/O times elsewhere", _prediction_paragraphs(report), list(_prediction(report))),
            Section("Contradictions: prediction", PREDICTION_ERRATA, []),
            Section("Limits of streams", _throttling_paragraphs(report), list(_throttling(report))),
            Section("Contradictions: limits of streams", THROTTLING_ERRATA, []),
        ]
    )


def _rate_paragraphs(report: StorageReport) -> Iterator[str]:
    yield f"Published: 16 drives began with {BASELINE_RANDOM_READ:,.0f} random reads a second."
    if not report.areas:
        yield "This depot has no storage area: there are published numbers only."


def _sweep_paragraphs() -> list[str]:
    factors = " x ".join(f"{count} {name}" for name, count in SWEEP_FACTORS.items())
    hours = SWEEP_RUNS * SWEEP_RUN_SECONDS / 3600.0
    share = hours * 3600.0 / (SWEEP_DAYS * _DAY_SECONDS)
    return [
        f"Published: {factors} x {SWEEP_PASSES} passes = {SWEEP_RUNS:,} runs of {SWEEP_RUN_SECONDS:g} s, "
        f"{hours:.1f} hours in about {SWEEP_DAYS:g} days: {share:.0%} of the time was measuring."
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


def _rates(report: StorageReport) -> Block:
    headings = ["System", "Written MB/s", "Read MB/s", "Random writes/s", "Random reads/s"]
    rows = [
        [
            f"published: {rates.system}",
            *(f"{value:,.0f}" for value in (rates.write_mb, rates.read_mb)),
            *(f"{value:,.0f}" for value in (rates.random_write, rates.random_read)),
        ]
        for rates in RATES
    ]
    for area in report.areas:
        values = _values(area)
        rows.append(
            [
                f"{OURS}: {area.resource.name}",
                _number(values.get("sequential_write"), 1e-6),
                _number(values.get("sequential_read"), 1e-6),
                _number(values.get("random_write")),
                _number(values.get("random_read")),
            ]
        )
    return table_block("Rates: large sequential and small random I/O", headings, rows)


def _efficiency(report: StorageReport) -> Block:
    rows = [
        [
            f"published: {rates.system}",
            f"{rates.random_read / (DRIVES * ONE_DRIVE.random_read):.0%}",
            f"{rates.random_read / (DRIVES * SPECIFIED_RANDOM_READ):.1%}",
            f"{rates.read_mb / (DRIVES * ONE_DRIVE.read_mb):.0%}",
        ]
        for rates in RATES
        if rates.system.startswith(f"{DRIVES} drives")
    ]
    for area in report.areas:
        if area.efficiencies:
            shares = {each.use: f"{each.share:.0%}" for each in area.efficiencies}
            rows.append(
                [
                    f"{OURS}: {area.resource.name}",
                    shares.get("random_read", NOTHING),
                    NOTHING,
                    shares.get("sequential_read", NOTHING),
                ]
            )
    headings = ["System", "Random reads", "of the specified rate", "Large reads"]
    return table_block("Efficiency: the rate over that of all parts", headings, rows)


def _merits(report: StorageReport) -> Block:
    headings = ["System", "GB", "MB/s per price", "Price per GB", "IOPS per price", "IOPS per GB", "Price"]
    rows = [
        [
            f"published: {merit.system}",
            f"{merit.gb:,.0f}",
            f"{merit.mb_per_dollar:.2f}",
            f"{merit.dollars_per_gb:.2f}",
            _number(merit.iops_per_dollar),
            _number(merit.iops_per_gb),
            f"{merit.gb * merit.dollars_per_gb:,.0f}",
        ]
        for merit in MERITS
    ]
    for area in report.areas:
        figures = {figure.name: figure.value for figure in area.figures}
        if figures:
            rows.append(
                [
                    f"{OURS}: {area.resource.name}",
                    _number(area.storage.get("capacity_gb")),
                    *(
                        NOTHING if name not in figures else significant(figures[name])
                        for name in (
                            "read_mb_per_second_per_price",
                            "price_per_gb",
                            "read_iops_per_price",
                            "read_iops_per_gb",
                        )
                    ),
                    _number(area.storage.get("price")),
                ]
            )
    title = "Rates for price and capacity; published prices in $, ours as in the grid file"
    return table_block(title, headings, rows)


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
        values = _values(area)
        if values.keys() & {"lookup", "scan", "search"}:
            ours.append(
                [
                    area.resource.name,
                    area.medium or NOTHING,
                    _number(values.get("lookup")),
                    _number(values.get("scan"), 1e-6),
                    _number(values.get("search")),
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
    ours = "" if report.elsewhere else "No forecast of this depot for a system without a run was scored yet."
    return [text, *([ours] if ours else [])]


def _prediction(report: StorageReport) -> Iterator[Block]:
    rows = [
        [error.interface, error.system, f"{error.read:+.2f}", f"{error.write:+.2f}", f"{error.total:+.2f}"]
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
            [each.series, str(each.n), f"{100 * each.mean:+.2f}", f"{100 * each.mean_absolute:.2f}"]
            for each in report.elsewhere
        ]
        headings = ["Series", "Scored", "Mean error %", "Mean absolute error %"]
        yield table_block("Ours: forecasts where the application had never run", headings, ours)


def _throttling_paragraphs(report: StorageReport) -> list[str]:
    text = "Published: seconds of MADbench by writers and readers at once."
    emulated = (
        "Emulated: the same load on our model of the device, in virtual time."
        if report.emulated
        else "The emulated devices need a C compiler, which this machine lacks."
    )
    return [f"{text} {emulated}", *FURTHER_THROTTLING]


def _throttling(report: StorageReport) -> Iterator[Block]:
    for table in THROTTLING:
        yield _throttling_block(table, report.emulated.get(table.profile, {}))
    yield _readers_block(report.emulated.get(RAID_READERS.profile, {}))
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
                _number(own),
                NOTHING if own is None else f"{own / seconds - 1:+.1%}",
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
                NOTHING if own is None else f"{own - 1:+.1%}",
                NOTHING if own is None else f"{own / (1 + slower) - 1:+.1%}",
            ]
        )
    title = (
        f"{RAID_READERS.system}: time by readers, against {RAID_READERS.best} "
        "(published: 1 reader over 13 %, 2 below 2 %)"
    )
    return table_block(title, ["Readers", "Published", "Emulated", "Difference"], rows)


def _values(area: StorageArea) -> dict[str, float]:
    return {use.use.name: use.value for use in area.uses}


def _number(value: float | None, factor: float = 1.0, *, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value * factor:,.{digits}f}"


def csv_rows(sections: Sequence[Section]) -> Iterator[Sequence[str | float]]:
    """Yield the rows of all tables; the number and the title of its table are before each row."""
    for section in sections:
        for block in section.blocks:
            if block.table:
                start = (str(block.number), block.title)
                yield (*start, *block.table.headings)
                for row in block.table.rows:
                    yield (*start, *map(_cell, row))


def _cell(text: str) -> str | float:
    """Return *text* as a number if it is one, per cent as a share; empty without a value."""
    if text == NOTHING:
        return ""
    try:
        number = float(text.replace(",", "").removesuffix("%"))
    except ValueError:
        return text
    return round(number / 100.0, 6) if text.endswith("%") else number
