"""The tables of published and drawn figures in docs/weather.md are those that the command prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from monitor.testbed.weather import profiles
from monitor.testbed.weather.comparison import ComparisonRow, compare
from monitor.testbed.weather.generator import Weather

DOCUMENT = Path(__file__).parents[4] / "docs/weather.md"
# By the heading of a table: profile, probe, and the order of its figures.
TABLES: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "TeraGrid": ("teragrid", "Gather", ("mean", "min", "max", "stdev")),
    "PreCo on TeraGrid": ("teragrid", "PreCo", ("mean", "stdev")),
    "GEON": ("geon", "Gather", ("mean", "min", "max", "stdev")),
}


def documented(heading: str) -> Iterator[Sequence[str]]:
    """Yield name, published and drawn figures of each row of the table with *heading*."""
    text = DOCUMENT.read_text(encoding="utf-8")
    table = re.search(rf"^\| {heading} .*?\n\n", text, flags=re.MULTILINE | re.DOTALL)
    assert table is not None
    yield from re.findall(r"^\| ([a-z_]+) \| ([\d./ ]+) \| ([\d./ ]+) \|$", table.group(), flags=re.MULTILINE)


@pytest.mark.parametrize("heading", TABLES)
def test_the_documented_figures_are_those_of_the_weather(heading: str) -> None:
    profile, probe, order = TABLES[heading]
    rows: Mapping[tuple[str, str], ComparisonRow] = {
        (row.subject, row.figure): row
        for row in compare(profiles.load(profile), Weather(profile, 0).draws(10_000))
    }
    names = []
    for name, published, drawn in documented(heading):
        compared = [rows[f"{probe} {name}", figure] for figure in order]
        assert published == " / ".join(f"{row.published:.2f}" for row in compared), name
        assert drawn == " / ".join(f"{row.drawn:.2f}" for row in compared), name
        names.append(f"{probe} {name}")
    assert set(names) == {
        row.subject for row in rows.values() if row.subject.split()[0] == probe and row.figure in order
    }
