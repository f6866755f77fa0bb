"""The SQL of consecutive failures: two scans of the index of (series, slot) per series."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from monitor.core.db import binary

MOST_FAILURES = 1000  # of a series, that are counted

_STREAKS = b"""
SELECT wanted.series, count(*)::int, min(slot), max(slot)
FROM unnest(%(series)b::bigint[]) AS wanted (series)
CROSS JOIN LATERAL (
    SELECT max(slot) AS passed_at FROM (
        SELECT slot FROM monitor_run
        WHERE series_id = wanted.series AND slot >= %(since)b AND slot <= %(now)b AND state = 'passed'
        ORDER BY slot DESC LIMIT 1
    ) AS passed
) AS latest
CROSS JOIN LATERAL (
    SELECT slot FROM monitor_run
    WHERE series_id = wanted.series AND slot >= %(since)b AND slot <= %(now)b
        AND (passed_at IS NULL OR slot > passed_at) AND state IN ('failed', 'broken', 'timed_out')
    ORDER BY slot DESC LIMIT %(most)b::int
) AS failed
GROUP BY wanted.series
"""


def streak_rows(
    series: Sequence[int], since: datetime, now: datetime
) -> list[tuple[int, int, datetime, datetime]]:
    """Return (series, number of failures, first slot, latest slot) for those of *series* that fail.

    Failures are those after the last passed run in [*since*, *now*], at most ``MOST_FAILURES``.
    """
    parameters = {"series": list(series), "since": since, "now": now, "most": MOST_FAILURES}
    with binary.cursor() as cursor:
        return cursor.execute(_STREAKS, parameters, binary=True).fetchall()
