"""How the values of a metric are distributed in a stretch of time."""

from __future__ import annotations

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

EXACT = timedelta(days=31)  # of longer stretches the sketches are read, not every value
BINS, MOST_BINS = 20, 1000
PERCENTS = (1, 5, 25, 50, 75, 95, 99)


@dataclass(frozen=True)
class Histogram(Freshness):
    """Values of passed runs, in *unit*: ``counts[i]`` lie from ``edges[i]`` until before ``edges[i + 1]``, in
    the last bin also on its upper edge. Bins are equally wide, from the least value to the greatest: a single
    one where all values are the same, none where there is no value.

    *quantiles*, by percent: the least values that so many do not exceed. All is exact if *exact*; else every
    value counts as one that is at most 1 % away from it (``monitor.depot.rollups.ddsketch``).
    """

    n: int
    unit: str
    edges: Sequence[float]
    counts: Sequence[int]
    quantiles: Mapping[int, float]
    exact: bool


def histogram(
    metric: Metric, start: datetime, end: datetime, bins: int = BINS, *, most_read: int = MOST_READ
) -> Histogram:
    """Of the values of *metric* from *start* until before *end*, in 1 to ``MOST_BINS`` *bins*: from sketches
    where the stretch is long, has more samples than *most_read*, or none any more."""
    if not 1 <= bins <= MOST_BINS:
        raise ValueError(f"expected 1 to {MOST_BINS} bins, got {bins}")
    found = _read(metric, start, end, most_read)
    values, many = _values(found)
    counts, edges = _binned(values, many, bins)
    return Histogram(
        found.complete,
        found.newest_known_at,
        n=int(many.sum()),
        unit=metric.unit,
        edges=edges.tolist(),
        counts=counts.tolist(),
        quantiles=_quantiles(values, many),
        exact=not len(found.rolled),
    )


def _read(metric: Metric, start: datetime, end: datetime, most_read: int) -> query.Found:
    """Every value, if they are not too many, nor have been taken away."""
    if end - start <= EXACT:
        found = query.read(metric.pk, start, end, tier=None, most_samples=most_read)
        if found.has_samples_from(start):
            return found
    return query.read(metric.pk, start, end, most_samples=most_read)


def _values(found: query.Found) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Of passed runs, in order, and how often each is there; what is rolled up as its sketch has it, but
    never beyond the least and the greatest of its day."""
    rolled = found.rolled[np.argsort(found.rolled["start"])]
    days = rolled[np.searchsorted(rolled["start"], found.counted["start"])]
    near = np.clip(ddsketch.values(found.counted["key"].astype(np.int64)), days["min"], days["max"])
    exact = found.samples["value"][found.samples["passed"]]
    values = np.concatenate([near, exact])
    counts = np.concatenate([found.counted["count"], np.ones(len(exact), np.int64)])
    order = np.argsort(values)
    return values[order], counts[order]


def _binned(
    values: NDArray[np.float64], counts: NDArray[np.int64], bins: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and edges of *values*, which are in order, each there so many times."""
    if not len(values):
        return np.empty(0, np.int64), np.empty(0)
    least, most = values[0], values[-1]
    edges = 4 * np.linspace(least / 4, most / 4, bins + 1)  # their difference may be no number
    edges[[0, -1]] = least, most
    if not (np.diff(edges) > 0).all():  # so near to each other that no number lies between two edges
        edges = np.array([least, most])
    until = np.concatenate([[0], np.cumsum(counts)])
    below = until[np.searchsorted(values, edges[1:-1], "left")]
    return np.diff(np.concatenate([[0], below, until[-1:]])), edges


def _quantiles(values: NDArray[np.float64], counts: NDArray[np.int64]) -> dict[int, float]:
    """Of *values*, which are in order, each there so many times; none of none."""
    if not len(values):
        return {}
    until = np.cumsum(counts)
    ranks = [max(-(-q * int(until[-1]) // 100), 1) for q in PERCENTS]
    return dict(zip(PERCENTS, values[np.searchsorted(until, ranks)].tolist(), strict=True))
