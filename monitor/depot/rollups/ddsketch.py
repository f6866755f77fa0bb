"""DDSketch: a mergeable sketch of values, for quantiles of any time range.

Each value is stored as the key of its bucket. Buckets grow by a constant factor, so that a quantile has a
relative error of at most ``RELATIVE_ERROR``: the mapping of DDSketch (Masson, Rim, Lee: DDSketch, a fast
and fully-mergeable quantile sketch with relative-error guarantees, PVLDB 12, 2019). A sketch is the
sorted list of its values' keys, two bytes each, which SQL can build and merge; the SQL function
``monitor_sketch_key`` computes ``key``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

RELATIVE_ERROR = 0.01
GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
LEAST, MOST = 1e-9, 1e21  # a nanosecond, a zettabyte: smaller values count as 0, larger ones as MOST
MOST_KEY = 3455  # the key of MOST
_OFFSET = 1 - math.ceil(math.log(LEAST) / math.log(GAMMA))  # the key of LEAST is 1


def key(value: float) -> int:
    """Return the key of *value*, -3455 to 3455; a larger value never has a smaller key."""
    size = min(abs(value), MOST)
    if size < LEAST:
        return 0
    return int(math.copysign(_OFFSET + math.ceil(math.log(size) / math.log(GAMMA)), value))


def value(key: int) -> float:
    """Return the middle of the bucket *key*: it is within RELATIVE_ERROR of every value in the bucket."""
    if key == 0:
        return 0.0
    return math.copysign(2 * GAMMA ** (abs(key) - _OFFSET) / (GAMMA + 1), key)


def keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the key of each value."""
    sizes = np.clip(np.abs(values), LEAST, MOST)
    buckets = _OFFSET + np.ceil(np.log(sizes) / math.log(GAMMA))
    return np.where(np.abs(values) < LEAST, 0, np.copysign(buckets, values)).astype(np.int64)


_VALUES = np.array([value(key) for key in range(-MOST_KEY, MOST_KEY + 1)])


def values(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the value of each key."""
    middles: NDArray[np.float64] = _VALUES[keys + MOST_KEY]
    return middles


def quantile(keys: Iterable[int], q: float) -> float | None:
    """Return the *q*-quantile (0 to 1) of the values with these *keys* as ``percentile_disc`` defines it."""
    ordered = sorted(keys)
    if not ordered:
        return None
    return value(ordered[max(math.ceil(q * len(ordered)), 1) - 1])
