"""How the values of a metric are distributed in a stretch of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from monitor.depot import rollups, sketch
from monitor.services.statistics import Freshness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.models import Metric

EXACT = timedelta(days=31)  # of longer stretches the sketches are read, not every value
BINS, MOST_BINS = 20, 1000
PERCENTS = (1, 5, 25, 50, 75, 95, 99)


@dataclass(frozen=True)
class Distribution(Freshness):
    """Values of passed runs, in *unit*: ``counts[i]`` lie from ``edges[i]`` until before ``edges[i + 1]``, in
    the last bin also on its upper edge. Bins are equally wide, from the least value to the greatest: a single
    one where all values are the same, none where there is no value.

    *quantiles*, by percent: the least values that so many do not exceed. All is exact if *exact*; else every
    value counts as one that is at most 1 % away from it (``monitor.depot.sketch``).
    """

    n: int
    unit: str
    edges: Sequence[float]
    counts: Sequence[int]
    quantiles: Mapping[int, float]
    exact: bool


def distribution(metric: Metric, start: datetime, end: datetime, bins: int = BINS) -> Distribution:
    """Of the values of *metric* from *start* until before *end*, in 1 to ``MOST_BINS`` *bins*."""
    if not 1 <= bins <= MOST_BINS:
        raise ValueError(f"expected 1 to {MOST_BINS} bins, got {bins}")
    found = rollups.read(metric.pk, start, end, tier=None if end - start <= EXACT else "day")
    values = np.sort(_values(found))
    counts, edges = _histogram(values, bins)
    return Distribution(
        found.complete,
        found.newest_known_at,
        n=len(values),
        unit=metric.unit,
        edges=edges.tolist(),
        counts=counts.tolist(),
        quantiles=_quantiles(values),
        exact=not len(found.rolled),
    )


def _values(found: rollups.Found) -> NDArray[np.float64]:
    """Of passed runs; what is rolled up as its sketch has it, but never beyond the least and the greatest of
    its day."""
    passed = found.rolled["passed"]
    least, most = (np.repeat(found.rolled[name], passed) for name in ("min", "max"))
    rolled = np.clip(sketch.values(found.keys), least, most)
    return np.concatenate([rolled, found.samples["value"][found.samples["passed"]]])


def _histogram(values: NDArray[np.float64], bins: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts and edges of *values*, which are in order."""
    if not len(values):
        return np.empty(0, np.int64), np.empty(0)
    least, most = values[0], values[-1]
    edges = 4 * np.linspace(least / 4, most / 4, bins + 1)  # their difference may be no number
    edges[[0, -1]] = least, most
    if not (np.diff(edges) > 0).all():  # so near to each other that no number lies between two edges
        edges = np.array([least, most])
    below = np.searchsorted(values, edges[1:-1], "left")
    return np.diff(np.concatenate([[0], below, [len(values)]])), edges


def _quantiles(values: NDArray[np.float64]) -> dict[int, float]:
    """Of *values*, which are in order; none of none."""
    if not len(values):
        return {}
    ranks = [max(-(-q * len(values) // 100), 1) - 1 for q in PERCENTS]
    return dict(zip(PERCENTS, values[ranks].tolist(), strict=True))
