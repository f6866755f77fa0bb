"""The values of a series as CSV, row by row: however many there are, they never lie in memory at once."""

from __future__ import annotations

import csv
import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from monitor.models import Run
from monitor.models.run import State
from monitor.services.history import each_value
from monitor.services.stretch import Stretch, ended_runs
from reporters.report import rfc3339

if TYPE_CHECKING:
    from monitor.models import Series

HEADER = ("name", "time", "value", "unit", "outcome", "segment")
MOST_RUNS = 1_000_000

Value = tuple[datetime, str, float | None, str, int | None]


class _Line:
    """What ``csv.writer`` writes to: keeps nothing, hands the line back."""

    def write(self, text: str) -> str:
        return text


def csv_lines(series: Series, stretch: Stretch, now: datetime) -> Iterator[str]:
    """Every value of every run in *stretch*, oldest first; *time* is the run's slot.

    A run that did not pass has a row without a value for its total, so that no run is missing. One that
    measured nothing is of no segment.
    """
    line = csv.writer(_Line()).writerow
    yield line(HEADER)
    runs, _ = ended_runs(series, stretch, now, at_most=MOST_RUNS)
    outcomes = {run.slot: run.state for run in runs}
    merged = heapq.merge(_values(series, runs), _no_totals(runs), key=itemgetter(0))
    for time, of_run in groupby(merged, key=itemgetter(0)):
        segment = None
        for _, name, value, unit, number in of_run:
            segment = number or segment  # the row without a value comes last
            if time in outcomes:
                shown = "" if value is None else repr(value)
                yield line((name, rfc3339(time), shown, unit, outcomes[time], segment))


def _values(series: Series, runs: Sequence[Run]) -> Iterator[Value]:
    if not runs:
        return iter(())
    return each_value(series, start=runs[0].slot, end=runs[-1].slot)


def _no_totals(runs: Sequence[Run]) -> Iterator[Value]:
    return ((run.slot, "total.seconds", None, "seconds", None) for run in runs if run.state != State.PASSED)
