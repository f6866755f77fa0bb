"""Store outcomes of jobs, as many as a request has, in one statement."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from monitor.analysis.forecasts.statements import fetch
from monitor.models import Outcome

# In the order of the names: two requests with the same jobs must not wait for each other.
_INSERT = """
INSERT INTO monitor_outcome
    (consumer_id, job, forecast_id, metric_id, passed, seconds, started_at, ended_at, received_at)
SELECT consumer_id, job, forecast_id, metric_id, passed, seconds, started_at, ended_at, received_at
FROM unnest(
    %(consumer_id)b::bigint[], %(job)b::text[], %(forecast_id)b::bigint[], %(metric_id)b::bigint[],
    %(passed)b::boolean[], %(seconds)b::float8[],
    %(started_at)b::timestamptz[], %(ended_at)b::timestamptz[], %(received_at)b::timestamptz[]
) AS told (consumer_id, job, forecast_id, metric_id, passed, seconds, started_at, ended_at, received_at)
ORDER BY consumer_id, job
ON CONFLICT (consumer_id, job) DO NOTHING
RETURNING job
"""
_COLUMNS = (
    *("consumer_id", "job", "forecast_id", "metric_id", "passed", "seconds"),
    *("started_at", "ended_at", "received_at"),
)


class _Inserted(NamedTuple):
    job: str


def insert(outcomes: Collection[Outcome]) -> set[str]:
    """Store those of *outcomes*, of one consumer, whose jobs have none; return the names of these jobs."""
    if not outcomes:
        return set()
    columns = {name: [getattr(outcome, name) for outcome in outcomes] for name in _COLUMNS}
    return {row.job for row in fetch(_Inserted, _INSERT, columns)}
