"""Read the inputs of forecasts: what runs and reported jobs measured, and how they ended.

The database packs all rows into one value in its binary format, which becomes a numpy array.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from monitor.core.db import binary
from monitor.core.db.timestamps import EPOCH

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

# Times are microseconds since 1970, UTC. The time of a run is its slot, that of a job its start. A job is
# filed at the time when its outcome was received: a late outcome changes nothing that was used already. The
# key is that of a metric or of a series.
_TIMES = "time", "ended_at", "known_at", "filed_at"
INPUT = np.dtype([("key", "<i8"), *((name, "<i8") for name in _TIMES), ("value", "<f8")])

_PACKED = """
SELECT string_agg(
    int8send(key) || timestamptz_send(time) || timestamptz_send(ended_at) || timestamptz_send(known_at)
        || timestamptz_send(filed_at) || float8send(value),
    ''::bytea
) FROM ({inputs}) AS packed
"""
_IN_HOURS = """
SELECT input.* FROM unnest(%(keys)b::bigint[], %(hours)b::timestamptz[]) AS wanted (key, hour)
CROSS JOIN LATERAL ({inputs}) AS input
"""
# The constant bounds prune partitions before the statement is executed.
_IN_HOUR = """
{0} >= hour AND {0} < hour + interval '1 hour' AND {0} >= %(first)b AND {0} < %(last)b + interval '1 hour'
"""
_AFTER = """
SELECT * FROM ({inputs}) AS input ORDER BY known_at FETCH FIRST %(at_most)b ROWS WITH TIES
"""
_BETWEEN = "{0} > %(after)b AND {0} <= %(until)b"


class InputRelation(NamedTuple):
    """A *query* of inputs, with placeholders for conditions: ``{keys}``, ``{runs}`` and ``{jobs}``.

    The other fields are names of columns: the time at which a run or a job is filed, and the time when it
    became known.
    """

    query: str
    run_filed_at: str
    job_filed_at: str
    run_known_at: str
    job_known_at: str

    def in_hours(self, wanted: Collection[tuple[int, datetime]]) -> NDArray[np.void]:
        """Return the inputs filed in the *wanted* pairs (key, start of an hour) as an unordered array."""
        if not wanted:
            return np.empty(0, INPUT)
        inputs = self.query.format(
            keys="= wanted.key",
            runs=_IN_HOUR.format(self.run_filed_at),
            jobs=_IN_HOUR.format(self.job_filed_at),
        )
        keys, hours = zip(*wanted, strict=True)
        bounds = {"first": min(hours), "last": max(hours)}
        return _read(_IN_HOURS.format(inputs=inputs), {"keys": list(keys), "hours": list(hours), **bounds})

    def after(
        self, keys: Collection[int], after: datetime, until: datetime, at_most: int
    ) -> NDArray[np.void]:
        """Return the first inputs of *keys* that became known later than *after*, and not later than *until*.

        The array is unordered. It has *at_most* rows, or more if further inputs became known at the same time
        as the last one.
        """
        inputs = self.query.format(
            keys="= ANY (%(keys)b::bigint[])",
            runs=_BETWEEN.format(self.run_known_at),
            jobs=_BETWEEN.format(self.job_known_at),
        )
        parameters = {"keys": list(keys), "after": after, "until": until, "at_most": at_most}
        return _read(_AFTER.format(inputs=inputs), parameters)


def _read(query: str, parameters: Mapping[str, object]) -> NDArray[np.void]:
    (packed,) = binary.row(_PACKED.format(inputs=query), parameters)
    rows = np.frombuffer(packed or b"", INPUT.newbyteorder(">")).astype(INPUT)
    for name in _TIMES:
        rows[name] += EPOCH
    return rows


METRIC_VALUES = InputRelation(
    """
    SELECT metric_id AS key, time, known_at AS ended_at, known_at, time AS filed_at, value
    FROM monitor_sample AS sample
    WHERE metric_id {keys} AND passed AND {runs}
    UNION ALL
    SELECT metric_id, started_at, ended_at, received_at, received_at, seconds
    FROM monitor_outcome AS outcome
    WHERE metric_id {keys} AND passed AND seconds IS NOT NULL AND {jobs}
    """,
    run_filed_at="time",
    job_filed_at="received_at",
    run_known_at="known_at",
    job_known_at="received_at",
)
# The value of a run that passed is how many seconds it took; of one that failed, -1 minus that. Outcomes for
# which the path is not to blame (broken, skipped, ...) do not count.
RUN_ENDS = InputRelation(
    """
    SELECT series_id AS key, slot AS time, ended_at, ended_at AS known_at, slot AS filed_at,
        CASE WHEN state = 'passed' THEN took ELSE -1 - took END AS value
    FROM monitor_run AS run CROSS JOIN LATERAL (
        SELECT greatest(extract(epoch FROM ended_at - coalesce(started_at, slot)), 0)::float8 AS took
    ) AS measured
    WHERE series_id {keys} AND state IN ('passed', 'failed', 'timed_out') AND {runs}
    UNION ALL
    SELECT segment.series_id, outcome.started_at, outcome.ended_at, received_at, received_at,
        CASE WHEN passed THEN took ELSE -1 - took END
    FROM monitor_outcome AS outcome
    JOIN monitor_metric AS metric ON metric.id = outcome.metric_id
    JOIN monitor_segment AS segment ON segment.id = metric.segment_id
    CROSS JOIN LATERAL (
        SELECT greatest(extract(epoch FROM outcome.ended_at - outcome.started_at), 0)::float8 AS took
    ) AS measured
    WHERE segment.series_id {keys} AND {jobs}
    """,
    run_filed_at="slot",
    job_filed_at="received_at",
    run_known_at="ended_at",
    job_known_at="received_at",
)
