"""Normalise the totals of an application and a probe, so that one chart can compare them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.analysis.performance.describe import standard_deviation
from monitor.analysis.performance.passed_runs import PassedRuns
from monitor.depot.samples.m4 import select_points

MOST_POINTS = 600  # of a line in a chart


@dataclass(frozen=True)
class NormalisedLine:
    """A metric in standard deviations from its mean, at *seconds* since 1970.

    There are at most ``MOST_POINTS`` points; *n* is the number of runs before they were reduced.
    """

    series: str
    n: int
    seconds: Sequence[float]
    sigmas: Sequence[float]


def normalised(series: str, runs: PassedRuns, metric: str) -> NormalisedLine | None:
    """Return *metric* of *runs*; None if fewer than two runs have it, or if it is constant."""
    if metric not in runs.durations:
        return None
    values, starts = runs.durations[metric], runs.started
    order = np.argsort(starts, kind="stable")
    is_measured = ~np.isnan(values[order])
    times, measured = starts[order][is_measured], values[order][is_measured]
    stdev = standard_deviation(measured)
    if not stdev:
        return None
    sigmas: NDArray[np.float64] = (measured - measured.mean()) / stdev
    chosen = select_points(times, sigmas, MOST_POINTS)
    return NormalisedLine(series, len(measured), (times[chosen] / 1e6).tolist(), sigmas[chosen].tolist())
