"""A stored sweep as the CSV that ``python -m forecasting effects`` and ``sweet-spot`` read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecasting.reading.sweeps import MARKS, PASS
from forecasting.sweeps.passes import is_steady, outliers
from monitor.analysis.performance.sweeps import PRICES, STREAM_FACTORS, as_sweep
from monitor.core.csvfile import to_csv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecasting.reading.sweeps import Levels
    from monitor.analysis.performance.sweeps import StoredSweep


def sweep_csv(sweep: StoredSweep) -> str:
    """Return *sweep* as CSV with a header; rows in order of passes and, within a pass, of combinations."""
    return to_csv(_stream_rows(sweep) if sweep.probe == "streams" else _sweep_rows(sweep), line_end="\n")


def _stream_rows(sweep: StoredSweep) -> Iterator[list[str]]:
    yield [*STREAM_FACTORS, PASS, "seconds", *PRICES]
    for value in sorted(sweep.values, key=lambda each: (each.number, [int(level) for level in each.levels])):
        prices = [repr(value.prices[name]) if name in value.prices else "" for name in PRICES]
        yield [*value.levels, str(value.number), repr(value.value), *prices]


def _sweep_rows(sweep: StoredSweep) -> Iterator[list[str]]:
    """Yield the rows. The marks are 0 or 1: a value of the first pass; an outlier; a combination's last
    values are a steady state."""
    cells = as_sweep(sweep)
    yield [*cells.factors, PASS, "value", *MARKS]
    marked: dict[tuple[Levels, int], tuple[bool, bool]] = {}
    for levels, values in cells.cells.items():
        later = [measured for measured in values if measured.number > 1]
        flags = outliers(np.array([measured.value for measured in later]))
        steady = is_steady([measured.value for measured in later])
        marked |= {
            (levels, measured.number): (bool(flag), steady)
            for measured, flag in zip(later, flags, strict=True)
        }
    rows = [
        (measured.number, levels, measured.value) for levels, own in cells.cells.items() for measured in own
    ]
    for number, levels, value in sorted(rows):
        is_outlier, steady = marked.get((levels, number), (False, False))
        marks = [number == 1, is_outlier, steady]
        yield [*levels, str(number), repr(value), *(str(int(mark)) for mark in marks)]
