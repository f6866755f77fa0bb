"""Figures of many rollups and samples together, by the stretch of time that each belongs to.

Means and deviations are put together pairwise (Chan, Golub, LeVeque: Algorithms for computing the sample
variance, The American Statistician 37, 1983), a sample being a rollup of one value; quantiles are exact where
there are samples alone, else of the sketches and the samples' own keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from monitor.depot.rollups import ddsketch
from monitor.depot.rollups.codec import PERCENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.depot.rollups.query import Found

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# What is larger counts as this much in means and deviations: no number could hold its square. The rollups do
# the same.
MOST = 1e150


class Figures(msgspec.Struct, frozen=True, gc=False):
    """*n* counts values, *passed* those of passed runs; all else is of these: None where there are none,
    *stdev* (of a sample: n - 1) also where there is one. A quantile is the least value that so many do not
    exceed."""

    n: int = 0
    passed: int = 0
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    stdev: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True)
class _Rows:
    """Rollups, and samples as rollups of one value, with the number of the group that each belongs to."""

    group: Ints
    n: Ints
    passed: Ints
    mean: Floats
    squares: Floats
    min: Floats
    max: Floats


def each(found: Found) -> list[tuple[int, Figures]]:
    """(start, figures) of each rollup of *found*, which was read with ranks."""
    rolled = found.rolled
    quantiles = ddsketch.values(found.ranks)
    return _listed(
        rolled["start"],
        rolled["n"],
        rolled["passed"],
        [rolled["mean"], rolled["min"], rolled["max"], rolled["stdev"]],
        np.clip(quantiles, rolled["min"][:, None], rolled["max"][:, None]),
    )


def merged(found: Found, start_of: Callable[[Ints], Ints]) -> list[tuple[int, Figures]]:
    """(start, figures) of each group of *found*, in order: of all whose time has the same *start_of*. Read
    without ranks."""
    times = np.concatenate([found.rolled["start"], found.samples["time"]])
    starts, group = np.unique(start_of(times), return_inverse=True)
    rows = _rows(found, group)
    many = len(starts)
    n, passed = _sums(group, rows.n, many), _sums(group, rows.passed, many)
    mean = _sums(group, rows.passed * rows.mean, many) / np.maximum(passed, 1)
    squares = _sums(group, rows.squares + rows.passed * (rows.mean - mean[group]) ** 2, many)
    least, most = np.full(many, np.inf), np.full(many, -np.inf)
    np.minimum.at(least, group, rows.min)
    np.maximum.at(most, group, rows.max)
    stdev = np.sqrt(squares / np.maximum(passed - 1, 1))
    quantiles = np.clip(_quantiles(found, start_of, starts), least[:, None], most[:, None])
    return _listed(starts, n, passed, [mean, least, most, stdev], quantiles)


def _rows(found: Found, group: Ints) -> _Rows:
    rolled, samples = found.rolled, found.samples
    passed = samples["passed"]
    value = np.where(passed, samples["value"], 0.0)
    rolled_squares = rolled["stdev"] ** 2 * np.maximum(rolled["passed"] - 1, 0)
    return _Rows(
        group=group,
        n=np.concatenate([rolled["n"], np.ones(len(samples), np.int64)]),
        passed=np.concatenate([rolled["passed"], passed.astype(np.int64)]),
        mean=np.concatenate([rolled["mean"], np.clip(value, -MOST, MOST)]),
        squares=np.concatenate([rolled_squares, np.zeros(len(samples))]),
        min=np.concatenate([rolled["min"], np.where(passed, value, np.inf)]),
        max=np.concatenate([rolled["max"], np.where(passed, value, -np.inf)]),
    )


def _sums(group: Ints, weights: NDArray[np.number], many: int) -> Floats:
    return np.bincount(group, weights, minlength=many).astype(np.float64)


def _quantiles(found: Found, start_of: Callable[[Ints], Ints], starts: Ints) -> Floats:
    """``PERCENTS`` of each group that begins at one of *starts*, a row each; nonsense for those that have
    nothing of passed runs."""
    samples = found.samples[found.samples["passed"]]
    of_samples = np.searchsorted(starts, start_of(samples["time"]))
    once = np.ones(len(samples), np.int64)
    exact = _ranked(of_samples, samples["value"], once, len(starts))
    if not len(found.counted):
        return exact
    of_sketches = np.searchsorted(starts, start_of(found.counted["start"]))
    groups = np.concatenate([of_sketches, of_samples])
    keys = np.concatenate([found.counted["key"], ddsketch.keys(samples["value"])])
    counts = np.concatenate([found.counted["count"], once])
    near = ddsketch.values(_ranked(groups, keys, counts, len(starts)).astype(np.int64))
    has_sketches = np.bincount(of_sketches, minlength=len(starts)) > 0
    return np.where(has_sketches[:, None], near, exact)


def _ranked(group: Ints, values: NDArray[np.number], counts: Ints, many: int) -> Floats:
    """Of the *values* of each of *many* groups, each there so many times, those that ``PERCENTS`` of them do
    not exceed, a row each. Nonsense for groups that have none."""
    if not len(values):
        return np.zeros((many, len(PERCENTS)))
    order = np.lexsort((values, group))
    until = np.cumsum(counts[order])
    total = np.bincount(group, counts, minlength=many).astype(np.int64)
    before = np.cumsum(total) - total
    rank = np.maximum((np.outer(total, PERCENTS) + 99) // 100, 1)
    at = np.searchsorted(until, before[:, None] + rank)
    found: Floats = values[order][np.minimum(at, len(order) - 1)].astype(np.float64)
    return found


def _listed(
    starts: Ints, n: NDArray[np.number], passed: NDArray[np.number], figures: list[Floats], quantiles: Floats
) -> list[tuple[int, Figures]]:
    *first, stdev = figures
    there, several = passed > 0, passed > 1
    columns = [*(_optional(one, there) for one in first), _optional(stdev, several)]
    columns += [_optional(one, there) for one in quantiles.T]
    counts = [column.astype(np.int64).tolist() for column in (n, passed)]
    rows = starmap(Figures, zip(*counts, *columns, strict=True))
    return list(zip(starts.tolist(), rows, strict=True))


def _optional(values: Floats, there: NDArray[np.bool_]) -> list[float | None]:
    found: list[float | None] = values.tolist()
    if there.all():
        return found
    return [value if has else None for value, has in zip(found, there.tolist(), strict=True)]
