"""The SQL of mean durations of stages at sites and resources, from daily rollups."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from monitor.core.db import binary

# Rollups of a metric are found by its key and the days: no history is read.
_DURATIONS = b"""
SELECT series.probe, substring(metric.name from 'stage\\.(.*)\\.seconds') AS stage,
    sum(rollup.passed)::bigint AS runs, sum(rollup.mean * rollup.passed) / sum(rollup.passed) AS mean,
    min(rollup.min) AS least, max(rollup.max) AS most
FROM monitor_series AS series
JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_metric AS metric ON metric.segment_id = segment.id
CROSS JOIN LATERAL (
    SELECT passed, mean, min, max FROM monitor_dayrollup
    WHERE metric_id = metric.id AND bucket >= date_trunc('day', %(start)b::timestamptz, 'UTC')
        AND bucket < %(end)b AND passed > 0 OFFSET 0
) AS rollup
WHERE series.id = ANY (%(series)b) AND metric.name LIKE 'stage.%%.seconds'
GROUP BY 1, 2
"""


@dataclass(frozen=True)
class StageDuration:
    """The seconds of a *stage* of *probe* in passed runs: how many runs, their mean, least and most."""

    probe: str
    stage: str
    runs: int
    mean: float
    least: float
    most: float


def stage_durations(series: Collection[int], start: datetime, end: datetime) -> list[StageDuration]:
    """Return the stages of *series* (primary keys) in the whole days (UTC) from *start* until *end*."""
    with binary.cursor() as cursor:
        cursor.row_factory = class_row(StageDuration)
        parameters = {"series": list(series), "start": start, "end": end}
        return cursor.execute(_DURATIONS, parameters, binary=True, prepare=False).fetchall()
