"""Tables of rates of storage, and of rates for price, capacity and power, beside the published ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from monitor.core.units import significant
from monitor.web.reports.blocks import Block, table_block
from monitor.web.reports.published_storage import (
    BASELINE_RANDOM_READ,
    DRIVES,
    MERITS,
    ONE_DRIVE,
    POWERS,
    RATES,
    SPECIFIED_DRIVE,
    TUNING_STEPS,
    Span,
)
from monitor.web.reports.storage_cells import NOTHING, OURS, difference, number

if TYPE_CHECKING:
    from monitor.analysis.storage.areas import StorageArea
    from monitor.web.reports.storage_report import StorageReport

HEADINGS = ("Written MB/s", "Read MB/s", "Random writes/s", "Random reads/s")  # in the order of Rates


def rate_paragraphs(report: StorageReport) -> Iterator[str]:
    """Yield what a reader has to know about the tables of rates."""
    yield f"Published: 16 drives began with {BASELINE_RANDOM_READ:,.0f} random reads a second."
    if report.emulated.rates:
        yield (
            "Emulated: our models of three devices, in virtual time, by requests of 4 MiB one after another "
            "and of 4 KiB at random, 128 at once. A model's controller takes as long for a write as for a "
            "read; the published one did not. The emulated ram has one limit, 4 GB/s, and was not fitted to "
            "the published memory."
        )
    kinds = "published and emulated" if report.emulated.rates else "published"
    if report.depot_problem:
        yield f"No depot was read: {report.depot_problem}. There are {kinds} numbers only."
    elif not report.areas:
        yield f"This depot has no storage area: there are {kinds} numbers only."


def rate_blocks(report: StorageReport) -> list[Block]:
    """Return the tables of rates, efficiencies, steps of tuning, and emulated devices."""
    return [_rates(report), _efficiency(report), _tuning(), _emulated(report)]


def merit_blocks(report: StorageReport) -> list[Block]:
    """Return the tables of rates for price and capacity, and for power."""
    return [_merits(report), _powers(report)]


def values_of(area: StorageArea) -> dict[str, float]:
    """Return the median of each use of *area*, by its name."""
    return {use.use.name: use.value for use in area.uses}


def _rates(report: StorageReport) -> Block:
    rows = [
        [f"published: {each.system}", *(f"{value:,.0f}" for value in each.rates)]
        for each in RATES
    ]  # fmt: skip
    for area in report.areas:
        values = values_of(area)
        rows.append(
            [
                f"{OURS}: {area.resource.name}",
                number(values.get("sequential_write"), 1e-6),
                number(values.get("sequential_read"), 1e-6),
                number(values.get("random_write")),
                number(values.get("random_read")),
            ]
        )
    return table_block("Rates: large sequential and small random I/O", ["System", *HEADINGS], rows)


def _efficiency(report: StorageReport) -> Block:
    rows = [
        [
            f"published: {each.system}",
            f"{each.rates.random_read / (DRIVES * ONE_DRIVE.rates.random_read):.0%}",
            f"{each.rates.random_read / (DRIVES * SPECIFIED_DRIVE.rates.random_read):.1%}",
            f"{each.rates.read_mb / (DRIVES * ONE_DRIVE.rates.read_mb):.0%}",
        ]
        for each in RATES
        if each.system.startswith(f"{DRIVES} drives")
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


def _tuning() -> Block:
    base = BASELINE_RANDOM_READ
    rows = [
        [
            step.fits.system,
            f"{step.factor}",
            f"{step.factor * base:,.0f}",
            f"{step.fits.rates.random_read:,.0f}",
            f"{step.fits.rates.random_read / base:.1f}",
        ]
        for step in TUNING_STEPS
    ]
    headings = [
        "System that fits",
        "Published step",
        f"{base:,.0f} times the step",
        "Reads/s of the system",
        f"Over {base:,.0f}",
    ]
    return table_block("Published: random reads a second by the steps of tuning", headings, rows)


def _emulated(report: StorageReport) -> Block:
    rows = []
    for published in RATES:
        if not published.profile:
            continue
        own = report.emulated.rates.get(published.profile)
        for place, heading in enumerate(HEADINGS):
            value, emulated = published.rates[place], None if own is None else own[place]
            rows.append(
                [
                    published.profile,
                    published.system,
                    heading,
                    f"{value:,.0f}",
                    number(emulated),
                    difference(emulated, value),
                ]
            )
    headings = ["Device", "Stands for", "Rate", "Published", "Emulated", "Difference"]
    return table_block("Emulated devices beside the published systems", headings, rows, texts=2)


def _merits(report: StorageReport) -> Block:
    headings = ["System", "GB", "MB/s per price", "Price per GB", "IOPS per price", "IOPS per GB", "Price"]
    rows = [
        [
            f"published: {merit.system}",
            f"{merit.gb:,.0f}",
            f"{merit.mb_per_dollar:.2f}",
            f"{merit.dollars_per_gb:.2f}",
            _spanned(merit.iops_per_dollar),
            _spanned(merit.iops_per_gb),
            f"{merit.gb * merit.dollars_per_gb:,.0f}",
        ]
        for merit in MERITS
    ]
    for area in report.areas:
        figures = _figures(area)
        if figures:
            rows.append(
                [
                    f"{OURS}: {area.resource.name}",
                    number(area.storage.get("capacity_gb")),
                    *(
                        _figure(figures, name)
                        for name in (
                            "read_mb_per_second_per_price",
                            "price_per_gb",
                            "read_iops_per_price",
                            "read_iops_per_gb",
                        )
                    ),
                    number(area.storage.get("price")),
                ]
            )
    title = "Rates for price and capacity; published prices in $, ours as in the grid file"
    return table_block(title, headings, rows)


def _powers(report: StorageReport) -> Block:
    headings = ["Device", "GB", "Watts, active", "Watts, idle", "IOPS per watt"]
    rows = [
        [
            f"published: {power.device}",
            f"{power.gb:,.0f}",
            f"{power.active_watts:g}",
            f"{power.idle_watts:g}",
            f"{power.iops_per_watt:,.0f}",
        ]
        for power in POWERS
    ]
    for area in report.areas:
        watts = area.storage.get("power_watts")
        if watts:
            rows.append(
                [
                    f"{OURS}: {area.resource.name}",
                    number(area.storage.get("capacity_gb")),
                    f"{watts:g}",
                    NOTHING,
                    _figure(_figures(area), "read_iops_per_watt"),
                ]
            )
    return table_block("Power; ours active, as in the grid file", headings, rows)


def _figures(area: StorageArea) -> dict[str, float]:
    return {figure.name: figure.value for figure in area.figures}


def _figure(figures: dict[str, float], name: str) -> str:
    return significant(figures[name]) if name in figures else NOTHING


def _spanned(value: float | Span) -> str:
    return f"{value[0]} to {value[1]}" if isinstance(value, tuple) else f"{value:,.0f}"
