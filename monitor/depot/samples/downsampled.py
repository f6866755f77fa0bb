"""Downsample the history of a metric to a number of points without losing extremes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np

from monitor.core.db.timestamps import micros
from monitor.depot.rollups import query
from monitor.depot.rollups.statistics import Freshness
from monitor.depot.rollups.time_ranges import DAY, HOUR
from monitor.depot.samples import sample_arrays
from monitor.depot.samples.m4 import Bins, bin_values, merge_bins, select_points
from monitor.depot.samples.sample_arrays import before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

MOST_READ = 10_000  # samples or rollups: read in a few milliseconds
_SECOND = 1_000_000  # microseconds

Method = Literal["raw", "m4", "hours", "days"]


@dataclass(frozen=True)
class Downsampled(Freshness):
    """The points of a chart: columns in order of time.

    Attributes:
        method: "raw" (all values), "m4" (the values that a line chart needs: ``m4.select_points``), or
            "hours" or "days" (bins, read from rollups).
        n: number of values of passed runs, before the reduction.
        time: times of the values or starts of the bins, in microseconds since 1970, UTC.
        value: the values, or the mean of each bin.
        lowest, highest: extremes of each bin; None without bins.
        step_seconds: length of a bin; None without bins.
    """

    method: Method
    n: int
    time: NDArray[np.int64]
    value: NDArray[np.float64]
    lowest: NDArray[np.float64] | None = None
    highest: NDArray[np.float64] | None = None
    step_seconds: float | None = None


def downsample(
    metric: Metric, *, start: datetime, end: datetime, points: int, most_read: int = MOST_READ
) -> Downsampled:
    """Return the values of passed runs from *start* until before *end* as at most *points* points.

    *points* is at least ``m4.LEAST_POINTS``. Rollups are read if there are more than *most_read* samples, or
    if samples of the range were deleted.
    """
    days = query.read(metric.pk, start, end, ranks=True)
    n = _count(days)
    if n <= most_read and days.has_samples_from(start):
        samples = sample_arrays.read(metric.pk, start=start, end=before(end))
        if len(samples) >= n:
            return _of_samples(samples, points, days)
    if (micros(end) - micros(start)) // HOUR <= most_read:
        hours = query.read(metric.pk, start, end, tier="hour", ranks=True)
        if _count(hours) >= n:
            return _of_rollups(hours, "hours", HOUR, points)
    return _of_rollups(days, "days", DAY, points)


def _count(result: query.QueryResult) -> int:
    """Count the values of passed runs."""
    return int(result.rolled["passed"].sum() + np.count_nonzero(result.samples["passed"]))


def _of_samples(samples: NDArray[np.void], points: int, result: query.QueryResult) -> Downsampled:
    shown = samples[select_points(samples["time"], samples["value"], points)]
    method: Method = "raw" if len(shown) == len(samples) else "m4"
    freshness = (result.complete, result.newest_known_at)
    return Downsampled(*freshness, method, len(samples), shown["time"], shown["value"])


def _of_rollups(result: query.QueryResult, method: Method, span: int, points: int) -> Downsampled:
    bins, step = merge_bins(_bins(result, span), span, points)
    return Downsampled(
        result.complete,
        result.newest_known_at,
        method,
        _count(result),
        bins.start,
        bins.mean,
        bins.lowest,
        bins.highest,
        step / _SECOND,
    )


def _bins(result: query.QueryResult, span: int) -> Bins:
    """Return the rollups and the samples of *result* as bins of *span* microseconds."""
    samples = np.sort(result.samples[result.samples["passed"]], order="time")
    rest = bin_values(samples["time"], samples["value"], span)
    rows = result.rolled[result.rolled["passed"] > 0]
    start = np.concatenate([rows["start"], rest.start])
    order = np.argsort(start)
    pairs = ((rows["passed"], rest.n), (rows["mean"], rest.mean), (rows["min"], rest.lowest))
    columns = [np.concatenate(pair)[order] for pair in (*pairs, (rows["max"], rest.highest))]
    return Bins(start[order], *columns)
