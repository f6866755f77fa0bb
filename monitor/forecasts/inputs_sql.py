"""What forecasters use: values of passed runs, and of real jobs, when they are known, as numpy arrays.

As with ``arrays``, the database puts the rows together to one value in its binary format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.db import binary
from monitor.db.timestamps import EPOCH

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

# Times are microseconds since 1970, UTC. A run's time is its slot, a job's when it started.
INPUT = np.dtype([("metric", "<i8"), ("time", "<i8"), ("known_at", "<i8"), ("value", "<f8")])

_PACKED = """
SELECT string_agg(
    int8send(metric_id) || timestamptz_send(time) || timestamptz_send(known_at) || float8send(value),
    ''::bytea
) FROM {relation} AS packed
"""
_KNOWN = """
    SELECT metric_id, time, known_at, value FROM monitor_sample AS sample
    WHERE {metric} AND passed AND {time}
    UNION ALL
    SELECT metric_id, started_at, received_at, seconds FROM monitor_outcome AS outcome
    WHERE {metric} AND passed AND seconds IS NOT NULL AND {started_at}
"""
_IN_HOUR = "{0} >= hour AND {0} < hour + interval '1 hour'"
_HOUR = {"time": _IN_HOUR.format("time"), "started_at": _IN_HOUR.format("started_at")}
_OF_HOURS = f"""(
    SELECT known.* FROM unnest(%(metrics)b::bigint[], %(hours)b::timestamptz[]) AS wanted (metric, hour)
    CROSS JOIN LATERAL ({_KNOWN.format(metric="metric_id = wanted.metric", **_HOUR)}) AS known
)"""  # noqa: S608  # our own words
_LATER = "{0} > %(than)b AND {0} <= %(by)b"
_THESE = "metric_id = ANY (%(metrics)b::bigint[])"
_PART = {"time": _LATER.format("known_at"), "started_at": _LATER.format("received_at")}
_NEXT = f"""(
    SELECT * FROM ({_KNOWN.format(metric=_THESE, **_PART)}) AS known
    ORDER BY known_at FETCH FIRST %(at_most)b ROWS WITH TIES
)"""  # noqa: S608


def of_hours(wanted: Collection[tuple[int, datetime]]) -> NDArray[np.void]:
    """All of these metrics in these hours (each by its start), in no order."""
    metrics, hours = zip(*wanted, strict=True) if wanted else ((), ())
    return read(_OF_HOURS, {"metrics": list(metrics), "hours": list(hours)})


def following(metrics: Sequence[int], than: datetime, by: datetime, at_most: int) -> NDArray[np.void]:
    """The first of *metrics* that became known later *than*, and not later than *by*, in no order: about
    *at_most*, for those that became known at the same time are not parted."""
    return read(_NEXT, {"metrics": list(metrics), "than": than, "by": by, "at_most": at_most})


def read(relation: str, told: dict[str, object]) -> NDArray[np.void]:
    """The rows of *relation*, a table or a query, that has the columns of ``INPUT``."""
    (packed,) = binary.row(_PACKED.format(relation=relation), told)
    rows = np.frombuffer(packed or b"", INPUT.newbyteorder(">")).astype(INPUT)
    for name in ("time", "known_at"):
        rows[name] += EPOCH
    return rows
