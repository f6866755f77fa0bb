"""The share of each part in the variance of a whole: ``cov(part, whole) / var(whole)``.

The whole is the sum of its parts, so the shares add up to 1; a part that falls as the others rise has a
negative share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from monitor.depot.samples import sample_arrays
from monitor.depot.samples.sample_arrays import before

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEWEST = 2_000  # runs: each has a value of every part


@dataclass(frozen=True)
class VarianceShares:
    """The shares of the parts by name, the largest first, from *n* runs."""

    n: int
    shares: Mapping[str, float]


def variance_shares(
    whole: int, parts: Mapping[str, int], start: datetime | None, end: datetime
) -> VarianceShares | None:
    """Return the shares of *parts* (metrics by name) in the variance of the metric *whole*.

    The newest ``NEWEST`` passed runs count that have a value of every part. None if their totals do not
    differ.
    """
    total = sample_arrays.read(whole, start=start, end=before(end), newest=NEWEST)
    columns = {
        name: sample_arrays.read(metric, start=start, end=before(end), newest=NEWEST)
        for name, metric in parts.items()
    }
    measured = {name: column for name, column in columns.items() if len(column)}
    times = total["time"]
    for column in measured.values():
        times = np.intersect1d(times, column["time"], assume_unique=True)
    values = {name: _at(column, times) for name, column in measured.items()}
    return shares(_at(total, times), values)


def shares(whole: NDArray[np.float64], parts: Mapping[str, NDArray[np.float64]]) -> VarianceShares | None:
    """Return the shares of the columns *parts* in the variance of the column *whole*."""
    if len(whole) < 2 or np.ptp(whole) == 0 or not parts:
        return None
    deviations = whole - whole.mean()
    variance = float(deviations @ deviations)
    found = {name: float((part - part.mean()) @ deviations) / variance for name, part in parts.items()}
    return VarianceShares(len(whole), dict(sorted(found.items(), key=lambda item: -item[1])))


def _at(column: NDArray[np.void], times: NDArray[np.int64]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column["value"][np.searchsorted(column["time"], times)]
    return values
