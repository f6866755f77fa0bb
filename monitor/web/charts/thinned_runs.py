"""Fewer runs for a chart by run: the extremes stay, and what did not pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import micros
from monitor.depot.samples.m4 import select_points
from monitor.models.run import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.web.charts.series_chart import RunChart

MOST_DRAWN = 600  # by their totals; a screen has hardly room for more bars
MOST_RATES = 200  # more for each rate, and for what did not pass


def thinned(chart: RunChart) -> RunChart:
    """Return *chart* with about ``MOST_DRAWN`` of its runs, or *chart* itself if it has no more.

    Of each short interval the first and the last run stay, the lowest and the highest total, the lowest and
    the highest rate, and the lowest and the highest of the runs that did not pass; and the runs at which a
    segment begins or ends. Forecasts stay with their runs.
    """
    if len(chart.runs) <= MOST_DRAWN:
        return chart
    times = np.array([micros(run.slot) for run in chart.runs])
    heights = _heights(chart)
    has_not_passed = np.array([run.state != State.PASSED for run in chart.runs])
    chosen = [
        select_points(times, heights, MOST_DRAWN),
        _select(times, heights, np.flatnonzero(has_not_passed)),
        *(_with_values(times, values) for values in chart.rates.values()),
        np.array(_borders(chart.segments), dtype=np.intp),
    ]
    kept = np.unique(np.concatenate(chosen)).tolist()
    slots = {chart.runs[at].slot for at in kept}
    return replace(
        chart,
        runs=[chart.runs[at] for at in kept],
        segments=[chart.segments[at] for at in kept],
        seconds={name: [values[at] for at in kept] for name, values in chart.seconds.items()},
        values=[chart.values[at] for at in kept],
        forecasts=[each for each in chart.forecasts if each.truth_time in slots],
        rates={name: [values[at] for at in kept] for name, values in chart.rates.items()},
    )


def _heights(chart: RunChart) -> NDArray[np.float64]:
    """Return the larger of the value and the sum of the stages of each run; 0 without both."""
    stages = [np.nan_to_num(np.array(values, dtype=float)) for values in chart.seconds.values()]
    value = np.nan_to_num(np.array(chart.values, dtype=float))
    heights: NDArray[np.float64] = np.maximum(value, np.sum(stages, axis=0)) if stages else value
    return heights


def _with_values(times: NDArray[np.int64], values: Sequence[float | None]) -> NDArray[np.intp]:
    numbers = np.array(values, dtype=float)
    return _select(times, numbers, np.flatnonzero(np.isfinite(numbers)))


def _select(times: NDArray[np.int64], values: NDArray[np.float64], at: NDArray[np.intp]) -> NDArray[np.intp]:
    return at[select_points(times[at], values[at], MOST_RATES)]


def _borders(segments: Sequence[int | None]) -> list[int]:
    measured = [at for at, segment in enumerate(segments) if segment is not None]
    return [at for old, new in pairwise(measured) if segments[old] != segments[new] for at in (old, new)]
