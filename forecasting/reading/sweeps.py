"""Read files of sweeps: rows of settings, the number of the pass, and what was measured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forecasting.reading.tables import CsvRow, UnreadableFile, rows, shown

PASS = "pass"  # noqa: S105 - a column
# Columns with what is known about a value (0 or 1); they are no factors.
MARKS = ("set_aside", "outlier", "steady")
_LARGEST_COUNT = 1_000_000
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")

Levels = tuple[str, ...]  # one level for each factor, in the order of ``Sweep.factors``


@dataclass(frozen=True)
class SweepValue:
    """The *value* (positive) that was measured in the pass *number* (from 1)."""

    number: int
    value: float


@dataclass(frozen=True)
class Sweep:
    """What was measured with each combination of the levels of *factors*: its values, by number of the
    pass."""

    factors: tuple[str, ...]
    cells: Mapping[Levels, Sequence[SweepValue]]

    def levels(self, factor: str) -> list[str]:
        """Return the levels of *factor* in the natural order: 4K before 16K."""
        place = self.factors.index(factor)
        return sorted({levels[place] for levels in self.cells}, key=natural_order)


def natural_order(level: str) -> list[str | float]:
    """Return the sort key of *level*: numbers in the text are ordered by their size."""
    parts = _NUMBER.split(level)  # text, number, text, ...
    return [float(part) if place % 2 else part for place, part in enumerate(parts)]


def read(file: str, value: str = "value", factors: Sequence[str] | None = None) -> Sweep:
    """Return the sweep in *file*: columns ``pass`` and *value*; *factors*: by default all others but marks.

    Raises:
        UnreadableFile: the file is no CSV; a column is missing; a value is no positive number; a combination
            of levels occurs twice in one pass; there is one pass only; or a factor has one level only, or a
            level of its own for most values.
    """
    cells: dict[Levels, dict[int, float]] = {}
    names: tuple[str, ...] = ()
    for row in rows(file, (PASS, value, *(factors or ()))):
        names = names or _factors(row, value, factors)
        number, measured = _count(row, PASS), _positive(row, value)
        values = cells.setdefault(tuple(row.text(name) for name in names), {})
        if number in values:
            raise UnreadableFile(f"{row.place}: pass {number} already has a value for these levels")
        values[number] = measured
    sweep = Sweep(
        names,
        {
            levels: [SweepValue(number, measured) for number, measured in sorted(values.items())]
            for levels, values in cells.items()
        },
    )
    _check(file, sweep)
    return sweep


def _factors(row: CsvRow, value: str, factors: Sequence[str] | None) -> tuple[str, ...]:
    others = {PASS, value, *MARKS}
    names = tuple(factors) if factors else tuple(name for name in row.cells if name not in others)
    if not names:
        raise UnreadableFile(f"{row.file}, line 1: expected a column for each factor, got {PASS} and {value}")
    return names


def _count(row: CsvRow, column: str) -> int:
    number = row.number(column)
    if not (1 <= number <= _LARGEST_COUNT and number == int(number)):
        raise row.error(column, f"a whole number from 1 to {_LARGEST_COUNT}", row.cells[column])
    return int(number)


def _positive(row: CsvRow, value: str) -> float:
    number = row.number(value)
    if number <= 0.0:
        raise row.error(value, "a positive number", row.cells[value])
    return number


def _check(file: str, sweep: Sweep) -> None:
    passes = {measured.number for values in sweep.cells.values() for measured in values}
    if len(passes) < 2:
        raise UnreadableFile(f"{file}: expected at least two passes, got pass {passes.pop()} only")
    for place, factor in enumerate(sweep.factors):
        counts: Counter[str] = Counter()
        for levels, values in sweep.cells.items():
            counts[levels[place]] += len(values)
        if reason := _no_factor(counts):
            raise UnreadableFile(f"{file}, {factor}: {reason}")


def _no_factor(counts: Counter[str]) -> str:
    """Return why a column with these *counts* of values by level is no factor, or nothing if it is one."""
    if len(counts) == 1:
        return f"expected a factor with at least two levels, got {shown(next(iter(counts)))} in each row"
    alone = sum(count == 1 for count in counts.values())
    if 2 * alone > counts.total():
        return (
            f"{alone} of {counts.total()} rows have a level of their own: leave the column out (--factors "
            "names the others), or measure each level in every pass"
        )
    return ""


@dataclass(frozen=True)
class StreamRow:
    """A run with this many *readers* and *writers* at once, in the pass *number*; *price* by its column."""

    number: int
    readers: int
    writers: int
    seconds: float
    price_seconds: Mapping[str, float]


STREAM_COLUMNS = ("readers", "writers", PASS, "seconds")
PRICES = ("barrier_seconds", "spread_seconds")  # columns that may be there


def read_streams(file: str) -> list[StreamRow]:
    """Return the runs in *file*, with columns readers, writers, pass and seconds.

    Raises:
        UnreadableFile: as ``read``.
    """
    found: dict[tuple[int, int, int], StreamRow] = {}
    for row in rows(file, STREAM_COLUMNS):
        number, readers, writers = _count(row, PASS), _count(row, "readers"), _count(row, "writers")
        if (number, readers, writers) in found:
            raise UnreadableFile(
                f"{row.place}: pass {number} already has a run with readers {readers} and writers {writers}"
            )
        prices = {name: row.number(name) for name in PRICES if row.cells.get(name, "").strip()}
        found[number, readers, writers] = StreamRow(
            number, readers, writers, _positive(row, "seconds"), prices
        )
    return list(found.values())
