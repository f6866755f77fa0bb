"""Rollups and samples as the database puts them together to one value, and the arrays that become of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.db.timestamps import EPOCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Times are microseconds since 1970, UTC. Without passed runs mean and stdev are 0, min and max infinite; with
# one stdev is 0.
_COLUMNS = ("mean", "min", "max", "stdev")
ROLLED = np.dtype([("start", "<i8"), ("n", "<i4"), ("passed", "<i4"), *((name, "<f8") for name in _COLUMNS)])
SAMPLE = np.dtype([("time", "<i8"), ("value", "<f8"), ("passed", "?")])
# Of what is in sketches: the start of its rollup, a key, and how many values have it.
COUNTED = np.dtype([("start", "<i8"), ("key", "<i2"), ("count", "<i4")])
PERCENTS = (50, 95, 99)
FEW = 2_000  # values: larger sketches are not sent key by key

SENT_ROLLUP = (
    "timestamptz_send(bucket) || int4send(n) || int4send(passed) || float8send(coalesce(mean, 0))"
    " || float8send(coalesce(min, 'Infinity')) || float8send(coalesce(max, '-Infinity'))"
    " || float8send(coalesce(stdev, 0))"
)
SENT_RANKS = "".join(
    f" || int2send(coalesce(sketch[({q} * passed + 99) / 100], 0::smallint))" for q in PERCENTS
)
SENT_SAMPLE = "timestamptz_send(time) || float8send(value) || boolsend(passed)"
SENT_COUNT = "timestamptz_send(bucket) || int2send(key) || int4send(many::integer)"
SENT_KEYS = f"string_agg(array_send(sketch), ''::bytea ORDER BY bucket) FILTER (WHERE passed <= {FEW})"

_ARRAY_HEADER = 20  # bytes, of an array on the wire; then a length and a key each
_KEY_ON_WIRE = np.dtype([("bytes", ">i4"), ("key", ">i2")])
_RANKED = np.dtype([("rolled", ROLLED), ("keys", "<i2", len(PERCENTS))])


def samples(packed: bytes | None) -> NDArray[np.void]:
    """``SAMPLE`` by ``SAMPLE``."""
    return _of(packed, SAMPLE, "time")


def times(packed: bytes | None) -> NDArray[np.int64]:
    return np.frombuffer(packed or b"", ">i8").astype(np.int64) + EPOCH


def rolled(packed: bytes | None) -> NDArray[np.void]:
    """``ROLLED`` by ``ROLLED``."""
    return _of(packed, ROLLED, "start")


def ranked(packed: bytes | None) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Rollups, and a row for each with the keys of ``PERCENTS``."""
    found = np.frombuffer(packed or b"", _RANKED.newbyteorder(">"))
    rows = found["rolled"].astype(ROLLED)
    rows["start"] += EPOCH
    return rows, found["keys"].astype(np.int64)


def counted(packed: bytes | None) -> NDArray[np.void]:
    """``COUNTED`` by ``COUNTED``."""
    return _of(packed, COUNTED, "start")


def each_counted(rows: NDArray[np.void], sketches: bytes | None) -> NDArray[np.void]:
    """Every key of the *sketches* of those *rows* that have ``FEW`` values, or fewer: ``COUNTED``."""
    parts, at = [np.empty(0, np.int16)], 0
    few = rows[rows["passed"] <= FEW]
    for count in few["passed"].tolist():
        if count:
            parts.append(np.frombuffer(sketches or b"", _KEY_ON_WIRE, count, at + _ARRAY_HEADER)["key"])
            at += _ARRAY_HEADER + _KEY_ON_WIRE.itemsize * count
    found = np.ones(few["passed"].sum(), COUNTED)
    found["start"] = np.repeat(few["start"], few["passed"])
    found["key"] = np.concatenate(parts)
    return found


def _of(packed: bytes | None, dtype: np.dtype[np.void], time: str) -> NDArray[np.void]:
    found = np.frombuffer(packed or b"", dtype.newbyteorder(">")).astype(dtype)
    found[time] += EPOCH
    return found
