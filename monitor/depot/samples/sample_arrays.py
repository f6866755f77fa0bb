"""Read the samples of one metric as a numpy array to compute with.

The database concatenates the rows to one binary value, which is decoded as the memory of an array. Two
years of hourly samples take 8 ms this way, 15 to 20 ms by binary COPY (each row is a message), 120 ms as
tuples, 180 ms as models.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db import binary
from monitor.core.db.timestamps import EPOCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Times are microseconds since 1970, UTC: the same number that ``datetime64[us]`` is.
SAMPLE = np.dtype([("time", "<i8"), ("known_at", "<i8"), ("value", "<f8"), ("passed", "?")])

METRIC_SAMPLE = np.dtype([("metric", "<i8"), ("time", "<i8"), ("value", "<f8")])

MOST = 2_000_000  # samples: four years of minutes; a PostgreSQL value is limited to 1 GB

_TIMES = ("time", "known_at")
# Big-endian records, with times since PostgreSQL's epoch.
PACKED = """
SELECT string_agg(timestamptz_send(time) || timestamptz_send(known_at) || float8send(value)
    || boolsend(passed), ''::bytea ORDER BY time)
FROM (
    SELECT time, known_at, value, passed FROM monitor_sample
    WHERE {where} ORDER BY time {order} LIMIT %(most)s
) AS packed
"""
_MANY = """
SELECT string_agg(int8send(metric_id) || timestamptz_send(time) || float8send(value), ''::bytea)
FROM monitor_sample WHERE metric_id = ANY (%(metrics)s) AND time >= %(start)s AND time <= %(end)s
"""
_WHERE = {
    "start": "time >= %(start)s",
    "end": "time <= %(end)s",
    "known_by": "known_at <= %(known_by)s",
}


class TooManySamples(Exception):
    """A metric has more samples than ``read`` may return; the message names the limit."""


def read(
    metric_id: int,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    known_by: datetime | None = None,
    passed_only: bool = True,
    newest: int | None = None,
    at_most: int = MOST,
) -> NDArray[np.void]:
    """Return an array of ``SAMPLE`` in order of time; see ``read.samples_of`` for the selection.

    Raises:
        TooManySamples: there are more than *at_most* samples; only *at_most* + 1 of them were read.
    """
    bounds = {"start": start, "end": end, "known_by": known_by}
    set_bounds = {name: time for name, time in bounds.items() if time is not None}
    where = [
        "metric_id = %(metric)s",
        *(_WHERE[name] for name in set_bounds),
        *(["passed"] if passed_only else []),
    ]
    query = PACKED.format(where=" AND ".join(where), order="ASC" if newest is None else "DESC")
    most = at_most + 1 if newest is None else min(newest, at_most + 1)
    (packed,) = binary.row(query, {"metric": metric_id, "most": most, **set_bounds})
    return decode(packed, at_most)


def read_many(metric_ids: Iterable[int], start: datetime, end: datetime) -> NDArray[np.void]:
    """Return an array of ``METRIC_SAMPLE`` from *start* to *end* (included), of all runs, in no order."""
    (packed,) = binary.row(_MANY, {"metrics": list(metric_ids), "start": start, "end": end})
    rows = np.frombuffer(packed or b"", METRIC_SAMPLE.newbyteorder(">")).astype(METRIC_SAMPLE)
    rows["time"] += EPOCH
    return rows


def decode(packed: bytes | None, at_most: int) -> NDArray[np.void]:
    """Decode a value of ``PACKED`` to an array of ``SAMPLE``.

    Raises:
        TooManySamples: there are more than *at_most* samples.
    """
    rows = np.frombuffer(packed or b"", SAMPLE.newbyteorder(">")).astype(SAMPLE)
    for name in _TIMES:
        rows[name] += EPOCH
    if len(rows) > at_most:
        raise TooManySamples(f"more than {at_most:,} values")
    return rows


def before(end: datetime | None) -> datetime | None:
    """Return the last microsecond before *end*."""
    return None if end is None else end - timedelta(microseconds=1)
