"""Combine rollups and samples into summary statistics of time ranges.

A sample counts as a rollup of one value. Means and deviations are merged pairwise (Chan, Golub, LeVeque:
Algorithms for computing the sample variance, The American Statistician 37, 1983). Quantiles are exact
where a range has samples only; otherwise they come from the sketches and the keys of the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from monitor.depot.rollups import ddsketch
from monitor.depot.rollups.codec import PERCENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.depot.rollups.query import QueryResult

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Larger values count as this much in means and deviations: their squares would overflow. Rollups clamp to the
# same bound.
MOST = 1e150


class SummaryStatistics(msgspec.Struct, frozen=True, gc=False):
    """The number of values, and statistics of the values of passed runs.

    Attributes:
        n: number of all values.
        passed: number of values of passed runs. If it is 0, all statistics are None.
        stdev: standard deviation, with divisor ``passed - 1``; None for fewer than two values.
        p50, p95, p99: quantiles. The quantile of a share is the least value v such that at least this share
            of the values is at most v.
    """

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
    """Rollups, and samples as rollups of one value; *group* has the number of each row's group."""

    group: Ints
    n: Ints
    passed: Ints
    mean: Floats
    squares: Floats
    min: Floats
    max: Floats


def per_rollup(result: QueryResult) -> list[tuple[int, SummaryStatistics]]:
    """Return (start in microseconds since 1970, statistics) of each rollup of a *result* with ranks."""
    rolled = result.rolled
    quantiles = ddsketch.values(result.ranks)
    return _statistics(
        rolled["start"],
        rolled["n"],
        rolled["passed"],
        [rolled["mean"], rolled["min"], rolled["max"], rolled["stdev"]],
        np.clip(quantiles, rolled["min"][:, None], rolled["max"][:, None]),
    )


def merged(result: QueryResult, start_of: Callable[[Ints], Ints]) -> list[tuple[int, SummaryStatistics]]:
    """Return (start, statistics) of each group of a *result* without ranks, in order of start.

    A group has all rollups and samples for whose times *start_of* returns the same start. All times are
    microseconds since 1970.
    """
    times = np.concatenate([result.rolled["start"], result.samples["time"]])
    starts, group = np.unique(start_of(times), return_inverse=True)
    rows = _rows(result, group)
    groups = len(starts)
    n, passed = _sums(group, rows.n, groups), _sums(group, rows.passed, groups)
    mean = _sums(group, rows.passed * rows.mean, groups) / np.maximum(passed, 1)
    squares = _sums(group, rows.squares + rows.passed * (rows.mean - mean[group]) ** 2, groups)
    least, most = _extremes(group, rows, groups)
    stdev = np.sqrt(squares / np.maximum(passed - 1, 1))
    quantiles = np.clip(_quantiles(result, start_of, starts, PERCENTS), least[:, None], most[:, None])
    return _statistics(starts, n, passed, [mean, least, most, stdev], quantiles)


@dataclass(frozen=True)
class Bands:
    """Statistics of groups of values of passed runs, as columns in order of *start*.

    *start* is in microseconds since 1970; *quantiles* has a row per group and a column per percentage.
    """

    start: Ints
    passed: Ints
    mean: Floats
    min: Floats
    max: Floats
    quantiles: Floats


def bands(result: QueryResult, start_of: Callable[[Ints], Ints], percents: Sequence[int]) -> Bands:
    """Return the groups of a *result* without ranks that have values of passed runs; see ``merged``."""
    times = np.concatenate([result.rolled["start"], result.samples["time"]])
    starts, group = np.unique(start_of(times), return_inverse=True)
    rows = _rows(result, group)
    passed = _sums(group, rows.passed, len(starts))
    mean = _sums(group, rows.passed * rows.mean, len(starts)) / np.maximum(passed, 1)
    least, most = _extremes(group, rows, len(starts))
    quantiles = np.clip(_quantiles(result, start_of, starts, percents), least[:, None], most[:, None])
    some = passed > 0
    counts = passed[some].astype(np.int64)
    return Bands(starts[some], counts, mean[some], least[some], most[some], quantiles[some])


def _extremes(group: Ints, rows: _Rows, groups: int) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of each group."""
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, group, rows.min)
    np.maximum.at(most, group, rows.max)
    return least, most


def _rows(result: QueryResult, group: Ints) -> _Rows:
    rolled, samples = result.rolled, result.samples
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


def _sums(group: Ints, weights: NDArray[np.number], groups: int) -> Floats:
    return np.bincount(group, weights, minlength=groups).astype(np.float64)


def _quantiles(
    result: QueryResult, start_of: Callable[[Ints], Ints], starts: Ints, percents: Sequence[int]
) -> Floats:
    """Return a row of quantiles (*percents*) for each group; the groups begin at *starts*.

    *start_of* maps times to the starts of their groups. The row of a group without passed runs is undefined.
    """
    samples = result.samples[result.samples["passed"]]
    of_samples = np.searchsorted(starts, start_of(samples["time"]))
    once = np.ones(len(samples), np.int64)
    exact = _percentiles(of_samples, samples["value"], once, len(starts), percents)
    if not len(result.entries):
        return exact
    of_sketches = np.searchsorted(starts, start_of(result.entries["start"]))
    groups = np.concatenate([of_sketches, of_samples])
    keys = np.concatenate([result.entries["key"], ddsketch.keys(samples["value"])])
    counts = np.concatenate([result.entries["count"], once])
    near = ddsketch.values(_percentiles(groups, keys, counts, len(starts), percents).astype(np.int64))
    has_sketches = np.bincount(of_sketches, minlength=len(starts)) > 0
    return np.where(has_sketches[:, None], near, exact)


def _percentiles(
    group: Ints, values: NDArray[np.number], counts: Ints, many: int, percents: Sequence[int]
) -> Floats:
    """Return a row of quantiles (*percents*) for each of *many* groups; undefined for empty groups.

    Value *i* belongs to the group ``group[i]`` and occurs ``counts[i]`` times.
    """
    if not len(values):
        return np.zeros((many, len(percents)))
    order = np.lexsort((values, group))
    until = np.cumsum(counts[order])
    total = np.bincount(group, counts, minlength=many).astype(np.int64)
    before = np.cumsum(total) - total
    rank = np.maximum((np.outer(total, percents) + 99) // 100, 1)
    at = np.searchsorted(until, before[:, None] + rank)
    percentiles: Floats = values[order][np.minimum(at, len(order) - 1)].astype(np.float64)
    return percentiles


def _statistics(
    starts: Ints, n: NDArray[np.number], passed: NDArray[np.number], columns: list[Floats], quantiles: Floats
) -> list[tuple[int, SummaryStatistics]]:
    *first, stdev = columns
    has_passed, has_several = passed > 0, passed > 1
    optional = [*(_optional(column, has_passed) for column in first), _optional(stdev, has_several)]
    optional += [_optional(column, has_passed) for column in quantiles.T]
    counts = [column.astype(np.int64).tolist() for column in (n, passed)]
    rows = starmap(SummaryStatistics, zip(*counts, *optional, strict=True))
    return list(zip(starts.tolist(), rows, strict=True))


def _optional(values: Floats, is_present: NDArray[np.bool_]) -> list[float | None]:
    """Return *values* as a list, with None where *is_present* is false."""
    items: list[float | None] = values.tolist()
    if is_present.all():
        return items
    return [value if has_value else None for value, has_value in zip(items, is_present.tolist(), strict=True)]
