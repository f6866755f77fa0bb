"""The SQL of expected durations: quantiles of the newest values of metrics, one index scan per metric."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from monitor.core.db import binary

_QUANTILES = b"""
SELECT metric.name, count(*)::int, percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY value)
FROM monitor_metric AS metric
CROSS JOIN LATERAL (
    SELECT value FROM monitor_sample
    WHERE metric_id = metric.id AND passed AND time >= %(since)b AND time < %(before)b
    ORDER BY time DESC LIMIT %(most)b::int
) AS newest
WHERE metric.segment_id = %(segment)b AND metric.name = ANY(%(names)b::text[])
GROUP BY metric.name
"""


def quantiles_before(
    segment: int, names: Sequence[str], since: datetime, before: datetime, most: int
) -> list[tuple[str, int, Sequence[float]]]:
    """Return (name, number of values, quantiles 10 %, 50 % and 90 %) of the newest *most* values in a time.

    The values are of passed runs with slots from *since* until before *before*.
    """
    parameters = {"segment": segment, "names": names, "since": since, "before": before, "most": most}
    with binary.cursor() as cursor:
        return cursor.execute(_QUANTILES, parameters, binary=True).fetchall()
