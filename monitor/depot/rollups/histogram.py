"""Compute the histogram of a metric in a time range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from monitor.depot.rollups import ddsketch, query
from monitor.depot.rollups.statistics import MOST_READ, Freshness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

EXACT = timedelta(days=31)  # longer ranges are read from sketches
BINS, MOST_BINS = 20, 1000
SIGMAS = tuple(half / 2 for half in range(-6, 13))  # the edges of bins: -3 to 6
PERCENTS = (1, 5, 25, 50, 75, 95, 99)


@dataclass(frozen=True)
class Histogram(Freshness):
    """The distribution of the values of passed runs, in *unit*.

    ``counts[i]`` values are at least ``edges[i]`` and below ``edges[i + 1]``; the last bin includes its upper
    edge. Bins are equally wide, from the least value to the greatest. If all values are equal, there is one
    bin; if there are no values, there is no bin. *quantiles* maps each of ``PERCENTS`` to a value. If *exact*
    is false, each value is approximated within 1 % (``monitor.depot.rollups.ddsketch``).
    """

    n: int
    unit: str
    edges: Sequence[float]
    counts: Sequence[int]
    quantiles: Mapping[int, float]
    exact: bool


@dataclass(frozen=True)
class BinnedSigmas:
    """The distribution of the values of passed runs in standard deviations from their mean.

    ``counts[i]`` values lie from ``edges[i]`` to below ``edges[i + 1]``; the first and the last bin have all
    values beyond. *exact*: as of ``Histogram``.
    """

    n: int
    mean: float
    stdev: float
    edges: Sequence[float]
    counts: Sequence[int]
    quantiles: Mapping[int, float]
    exact: bool


def sigma_histogram(metric: Metric, start: datetime, end: datetime) -> BinnedSigmas | None:
    """Return the histogram from *start* until before *end*; None if the values do not differ."""
    result = _read(metric, start, end, MOST_READ)
    values, counts = _values(result)
    n = int(counts.sum())
    if n < 2 or values[0] == values[-1]:
        return None
    shares = counts / n
    mean = float((values * shares).sum())
    stdev = math.sqrt(float(((values - mean) ** 2 * shares).sum()) * n / (n - 1))
    bins = np.searchsorted(SIGMAS[1:-1], (values - mean) / stdev, "right")
    totals = np.bincount(bins, counts, minlength=len(SIGMAS) - 1).astype(np.int64)
    quantiles = _quantiles(values, counts)
    return BinnedSigmas(n, mean, stdev, SIGMAS, totals.tolist(), quantiles, exact=not len(result.rolled))


def histogram(
    metric: Metric, start: datetime, end: datetime, bins: int = BINS, *, most_read: int = MOST_READ
) -> Histogram:
    """Return the histogram from *start* until before *end* with 1 to ``MOST_BINS`` *bins*.

    Sketches are read instead of samples if the range is longer than ``EXACT``, has more than *most_read*
    samples, or reaches back before the retention of samples.
    """
    if not 1 <= bins <= MOST_BINS:
        raise ValueError(f"expected 1 to {MOST_BINS} bins, got {bins}")
    result = _read(metric, start, end, most_read)
    values, multiplicities = _values(result)
    counts, edges = _binned(values, multiplicities, bins)
    return Histogram(
        result.complete,
        result.newest_known_at,
        n=int(multiplicities.sum()),
        unit=metric.unit,
        edges=edges.tolist(),
        counts=counts.tolist(),
        quantiles=_quantiles(values, multiplicities),
        exact=not len(result.rolled),
    )


def _read(metric: Metric, start: datetime, end: datetime, most_read: int) -> query.QueryResult:
    """Read samples if the range is short, has few samples, and no sample was deleted; rollups otherwise."""
    if end - start <= EXACT:
        result = query.read(metric.pk, start, end, tier=None, most_samples=most_read)
        if result.has_samples_from(start):
            return result
    return query.read(metric.pk, start, end, most_samples=most_read)


def _values(result: query.QueryResult) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the values of passed runs, ascending, and the count of each value.

    Values of sketches are clamped to the minimum and maximum of their day.
    """
    rolled = result.rolled[np.argsort(result.rolled["start"])]
    days = rolled[np.searchsorted(rolled["start"], result.entries["start"])]
    near = np.clip(ddsketch.values(result.entries["key"].astype(np.int64)), days["min"], days["max"])
    exact = result.samples["value"][result.samples["passed"]]
    values = np.concatenate([near, exact])
    counts = np.concatenate([result.entries["count"], np.ones(len(exact), np.int64)])
    order = np.argsort(values)
    return values[order], counts[order]


def _binned(
    values: NDArray[np.float64], counts: NDArray[np.int64], bins: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the counts and the edges of *bins* bins of the sorted *values*.

    Value *i* occurs ``counts[i]`` times.
    """
    if not len(values):
        return np.empty(0, np.int64), np.empty(0)
    least, most = values[0], values[-1]
    edges = 4 * np.linspace(
        least / 4, most / 4, bins + 1
    )  # quarters: the difference of two large values overflows
    edges[[0, -1]] = least, most
    if not (np.diff(edges) > 0).all():  # no float lies between two edges
        edges = np.array([least, most])
    until = np.concatenate([[0], np.cumsum(counts)])
    below = until[np.searchsorted(values, edges[1:-1], "left")]
    return np.diff(np.concatenate([[0], below, until[-1:]])), edges


def _quantiles(values: NDArray[np.float64], counts: NDArray[np.int64]) -> dict[int, float]:
    """Return the quantiles of sorted *values* by ``PERCENTS``; value *i* occurs ``counts[i]`` times."""
    if not len(values):
        return {}
    until = np.cumsum(counts)
    ranks = [max(-(-q * int(until[-1]) // 100), 1) for q in PERCENTS]
    return dict(zip(PERCENTS, values[np.searchsorted(until, ranks)].tolist(), strict=True))
