"""Send rollups and samples as one binary value per query, and decode them to numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db.timestamps import EPOCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Times are microseconds since 1970, UTC. Without passed runs mean and stdev are 0, min and max infinite; with
# one passed run stdev is 0.
_COLUMNS = ("mean", "min", "max", "stdev")
ROLLUP = np.dtype([("start", "<i8"), ("n", "<i4"), ("passed", "<i4"), *((name, "<f8") for name in _COLUMNS)])
SAMPLE = np.dtype([("time", "<i8"), ("value", "<f8"), ("passed", "?")])
# An entry of a sketch: the start of its rollup, a key, and how many values have it.
SKETCH_ENTRY = np.dtype([("start", "<i8"), ("key", "<i2"), ("count", "<i4")])
PERCENTS = (50, 95, 99)
SMALL_SKETCH = 2_000  # values: larger sketches are sent as counts of keys

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
SENT_KEYS = (
    f"string_agg(array_send(sketch), ''::bytea ORDER BY bucket) FILTER (WHERE passed <= {SMALL_SKETCH})"
)

_ARRAY_HEADER = 20  # bytes of a binary array before its elements, each a length and a key
_KEY_ON_WIRE = np.dtype([("bytes", ">i4"), ("key", ">i2")])
_RANKED = np.dtype([("rollup", ROLLUP), ("keys", "<i2", len(PERCENTS))])


def samples(packed: bytes | None) -> NDArray[np.void]:
    """Decode an array of ``SAMPLE``."""
    return _decode(packed, SAMPLE, "time")


def times(packed: bytes | None) -> NDArray[np.int64]:
    return np.frombuffer(packed or b"", ">i8").astype(np.int64) + EPOCH


def rollups(packed: bytes | None) -> NDArray[np.void]:
    """Decode an array of ``ROLLUP``."""
    return _decode(packed, ROLLUP, "start")


def ranked(packed: bytes | None) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Decode rollups with ranks to an array of ``ROLLUP`` and, per row, the sketch keys of ``PERCENTS``."""
    rows = np.frombuffer(packed or b"", _RANKED.newbyteorder(">"))
    decoded = rows["rollup"].astype(ROLLUP)
    decoded["start"] += EPOCH
    return decoded, rows["keys"].astype(np.int64)


def sketch_entries(packed: bytes | None) -> NDArray[np.void]:
    """Decode an array of ``SKETCH_ENTRY``."""
    return _decode(packed, SKETCH_ENTRY, "start")


def small_sketch_entries(rows: NDArray[np.void], sketches: bytes | None) -> NDArray[np.void]:
    """Decode the small *sketches* of rollups to an array of ``SKETCH_ENTRY``, one entry per value."""
    parts, at = [np.empty(0, np.int16)], 0
    few = rows[rows["passed"] <= SMALL_SKETCH]
    for count in few["passed"].tolist():
        if count:
            parts.append(np.frombuffer(sketches or b"", _KEY_ON_WIRE, count, at + _ARRAY_HEADER)["key"])
            at += _ARRAY_HEADER + _KEY_ON_WIRE.itemsize * count
    entries = np.ones(few["passed"].sum(), SKETCH_ENTRY)
    entries["start"] = np.repeat(few["start"], few["passed"])
    entries["key"] = np.concatenate(parts)
    return entries


def _decode(packed: bytes | None, dtype: np.dtype[np.void], time: str) -> NDArray[np.void]:
    """Decode big-endian records to *dtype*; convert the field *time* from PostgreSQL's epoch to 1970."""
    rows = np.frombuffer(packed or b"", dtype.newbyteorder(">")).astype(dtype)
    rows[time] += EPOCH
    return rows
