"""States of metrics that nobody asks for any more: what is known goes, what was said stays.

A state is asleep that is not behind and has used nothing: it wakes, and reads the depot, when a value comes
to it after all.
"""

from __future__ import annotations

from datetime import datetime

from monitor.db import binary

# Who is at one of them just now keeps it awake until the next time.
_REST = """
WITH tired AS (
    SELECT state.metric_id, metric.name FROM monitor_forecaststate AS state
    JOIN monitor_metric AS metric ON metric.id = state.metric_id
    JOIN monitor_segment AS segment ON segment.id = metric.segment_id
    JOIN monitor_currentsegment AS kept ON kept.series_id = segment.series_id
        AND kept.segment_id IS DISTINCT FROM segment.id
    WHERE state.state IS NOT NULL AND NOT is_behind AND coalesce(last_time, began_at) < %(before)b
    ORDER BY state.metric_id LIMIT %(at_most)b FOR UPDATE OF state SKIP LOCKED
), resting AS (
    UPDATE monitor_forecaststate AS state
    SET state = NULL, versions = NULL, used_until = NULL, used = NULL, marked_until = NULL
    FROM tired WHERE state.metric_id = tired.metric_id
), unmarked AS (
    DELETE FROM monitor_checkpoint WHERE metric_id IN (SELECT metric_id FROM tired)
), deaf AS (
    DELETE FROM monitor_forecastpredictor WHERE metric_id IN (SELECT metric_id FROM tired)
)
SELECT metric_id, name FROM tired
"""


def rest(before: datetime, at_most: int) -> dict[int, str]:
    """Let metrics rest whose newest value is of before then, and of another segment than that which the next
    run of its series belongs to; their names, by key."""
    with binary.cursor() as cursor:
        return dict(cursor.execute(_REST, {"before": before, "at_most": at_most}).fetchall())
