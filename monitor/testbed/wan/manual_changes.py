"""Change a running emulated network by hand; the changes override the weather until they are undone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from monitor.testbed.errors import TestbedError
from monitor.testbed.sites.description import WAN, GridDescription, load_description
from monitor.testbed.sites.files import write_atomically
from monitor.testbed.wan.emulator import read_table
from monitor.testbed.wan.geography import HUB
from monitor.testbed.wan.grid import HAND, TABLES
from monitor.testbed.wan.links import (
    BYTES_PER_MBIT,
    LinkProperties,
    LinkTable,
    format_lines,
    link_line,
    parse_lines,
)

FIGURES = ("delay_ms", "jitter_ms", "loss_percent", "rate_mbit")


def change(directory: Path, source: str, target: str, figures: Mapping[str, float | None]) -> None:
    """Change the link from *source* to *target*; a figure that is None stays unchanged.

    *directory* is the directory of the running network.

    Raises:
        BadLinkTable, TestbedError: the network is not up, a site is unknown, or no figure was given.
    """
    grid = _up(directory)
    file = directory / HAND
    line = link_line(source, target, **figures)
    lines = [*(parse_lines(file.read_text(encoding="utf-8")) if file.exists() else []), line]
    LinkTable.of((*grid.sites, HUB), lines)
    write_atomically(file, format_lines(lines))


def mend(directory: Path) -> None:
    """Undo all manual changes."""
    (directory / HAND).unlink(missing_ok=True)


def report(directory: Path) -> Iterator[str]:
    """Yield a line for each direction of the network: its properties and counts of packets."""
    grid = _up(directory)
    table = read_table((*grid.sites, HUB), [directory / name for name in TABLES])
    counts = _counts(directory / "counters.json")
    for (source, target), link in table.links.items():
        uplink = table.uplinks[source] / BYTES_PER_MBIT
        yield f"{source:>8} > {target:<8} {_figures(link, uplink)}{counts.get((source, target), '')}"


def _up(directory: Path) -> GridDescription:
    grid = load_description(directory)
    if grid is None or grid.kind != WAN:
        raise TestbedError(f"no wide-area test-bed is up in {directory}")
    return grid


def _figures(link: LinkProperties, uplink_mbit: float) -> str:
    rates = [rate for rate in (uplink_mbit, link.bytes_per_second / BYTES_PER_MBIT) if rate]
    rate = f"{min(rates):g} Mbit/s" if rates else "no limit"
    delay = f"{link.delay_seconds * 1000:g} ms +- {link.jitter_seconds * 1000:g}"
    return f"{delay:<18}{rate:<14}{link.loss:.3%} lost"


def _counts(file: Path) -> dict[tuple[str, str], str]:
    if not file.exists():
        return {}
    rows = json.loads(file.read_text(encoding="utf-8"))
    return {
        (row["source"], row["target"]): "   so far {packets} packets, {bytes} bytes, {lost} lost, "
        "{dropped} dropped".format(**row)
        for row in rows
    }
