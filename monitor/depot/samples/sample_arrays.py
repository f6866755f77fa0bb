"""Samples of one metric as numpy arrays: what is computed with, where ``samples`` has what is shown.

The database puts the rows together to one value in its binary format, which is the memory of an array: two
years of hours take 8 ms so, by COPY in binary 15 to 20 (each row is a message), as tuples 120, as models 180.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from monitor.db import binary
from monitor.db.timestamps import EPOCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Times are microseconds since 1970, UTC: the same number that ``datetime64[us]`` is.
SAMPLE = np.dtype([("time", "<i8"), ("known_at", "<i8"), ("value", "<f8"), ("passed", "?")])

MOST = 2_000_000  # samples: four years of minutes. The database makes one value of them, which has its bound

_TIMES = ("time", "known_at")
_PACKED = """
SELECT string_agg(timestamptz_send(time) || timestamptz_send(known_at) || float8send(value)
    || boolsend(passed), ''::bytea ORDER BY time)
FROM (
    SELECT time, known_at, value, passed FROM monitor_sample
    WHERE {where} ORDER BY time {order} LIMIT %(most)s
) AS packed
"""
_WHERE = {
    "start": "time >= %(start)s",
    "end": "time <= %(end)s",
    "known_by": "known_at <= %(known_by)s",
}


class TooMany(Exception):
    """More values than are read at once; says how many are."""


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
    """``SAMPLE`` by ``SAMPLE`` in order of time; the selections are those of ``samples.read``.

    Raises:
        TooMany: they are more than *at_most*; no more than that were looked at.
    """
    bounds = {"start": start, "end": end, "known_by": known_by}
    told = {name: time for name, time in bounds.items() if time is not None}
    where = ["metric_id = %(metric)s", *(_WHERE[name] for name in told), *(["passed"] if passed_only else [])]
    query = _PACKED.format(where=" AND ".join(where), order="ASC" if newest is None else "DESC")
    most = at_most + 1 if newest is None else min(newest, at_most + 1)
    (packed,) = binary.row(query, {"metric": metric_id, "most": most, **told})
    found = _unpacked(packed)
    if len(found) > at_most:
        raise TooMany(f"more than {at_most:,} values")
    return found


def _unpacked(packed: bytes | None) -> NDArray[np.void]:
    """Samples out of the format of the database, which has the highest byte first."""
    rows = np.frombuffer(packed or b"", SAMPLE.newbyteorder(">")).astype(SAMPLE)
    for name in _TIMES:
        rows[name] += EPOCH
    return rows


def before(end: datetime | None) -> datetime | None:
    """The last time before *end* that there is."""
    return None if end is None else end - timedelta(microseconds=1)
