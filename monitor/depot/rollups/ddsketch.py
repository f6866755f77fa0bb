"""A mergeable sketch of many values, for quantiles of any stretch of time.

Each value is kept as the number of its bucket, and buckets grow by a constant factor, so that a quantile is
wrong by ``RELATIVE_ERROR`` of its value at most: the mapping of DDSketch (Masson, Rim, Lee: DDSketch, a fast
and fully-mergeable quantile sketch with relative-error guarantees, PVLDB 12, 2019). A sketch is the list of
its values' keys in order, two bytes each, so that the database can make and merge it by itself; the function
``monitor_sketch_key`` there (migration 0012) is ``key`` here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

RELATIVE_ERROR = 0.01
GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
LEAST, MOST = 1e-9, 1e21  # a nanosecond, a zettabyte: what is nearer to 0 is 0, what is farther is MOST
MOST_KEY = 3455  # of MOST
_OFFSET = 1 - math.ceil(math.log(LEAST) / math.log(GAMMA))  # the key of LEAST is 1


def key(value: float) -> int:
    """The key of *value*: -3455 to 3455, in the order of the values."""
    size = min(abs(value), MOST)
    if size < LEAST:
        return 0
    return int(math.copysign(_OFFSET + math.ceil(math.log(size) / math.log(GAMMA)), value))


def value(key: int) -> float:
    """The value in the middle of the bucket *key*: no value of it is farther away than RELATIVE_ERROR."""
    if key == 0:
        return 0.0
    return math.copysign(2 * GAMMA ** (abs(key) - _OFFSET) / (GAMMA + 1), key)


def keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """``key`` of each."""
    sizes = np.clip(np.abs(values), LEAST, MOST)
    found = _OFFSET + np.ceil(np.log(sizes) / math.log(GAMMA))
    return np.where(np.abs(values) < LEAST, 0, np.copysign(found, values)).astype(np.int64)


_VALUES = np.array([value(key) for key in range(-MOST_KEY, MOST_KEY + 1)])


def values(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """``value`` of each."""
    found: NDArray[np.float64] = _VALUES[keys + MOST_KEY]
    return found


def quantile(keys: Iterable[int], q: float) -> float | None:
    """The *q*-quantile (0 to 1) of the values whose *keys* these are: the least that at least so many do not
    exceed, as ``percentile_disc`` has it. None of none."""
    ordered = sorted(keys)
    if not ordered:
        return None
    return value(ordered[max(math.ceil(q * len(ordered)), 1) - 1])
