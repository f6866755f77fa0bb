"""Give series of the wide grid 60,000 runs each, one a minute, with a value of each stage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from monitor.analysis.outcomes import worker as outcomes
from monitor.models import Series
from monitor.web.status import latest_sql
from tests.rollups import roll_all

RUNS = 60_000  # 41.7 days: ``wide_grid`` makes the partitions of 42
METRICS = (
    *(f"stage.{stage}.seconds" for stage in ("init", "run", "transfer", "cleanup")),
    "total_essential.seconds",
    "total_core.seconds",
)  # beside the total, which the series have
FAILED_ONE_IN = 50

# Without triggers, as the wide grid; the hours that they would mark are marked at the end.
_LOAD = """
SET session_replication_role = replica;
CREATE TEMPORARY TABLE long_series AS
SELECT series.id, segment.id AS segment_id, resource.name AS host FROM monitor_series AS series
JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_binding AS binding ON binding.series_id = series.id AND binding.role = 'target'
JOIN monitor_resource AS resource ON resource.id = binding.resource_id
WHERE series.name = ANY(%(names)s);
CREATE TEMPORARY TABLE long_slot AS
SELECT ago %% %(failed_one_in)s <> 0 AS has_passed,
    date_trunc('minute', now()) - make_interval(mins => ago) AS slot
FROM generate_series(%(runs)s, 1, -1) AS ago;
UPDATE monitor_segment SET began_at = now() - make_interval(mins => %(runs)s + 1)
WHERE id IN (SELECT segment_id FROM long_series);
INSERT INTO monitor_metric (segment_id, name, unit)
SELECT segment_id, name, 'seconds' FROM long_series, unnest(%(metrics)s::text[]) AS name;
INSERT INTO monitor_run (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced, started_at, ended_at)
SELECT gen_random_uuid(), id, slot, slot, 'schedule', CASE WHEN has_passed THEN 'passed' ELSE 'failed' END,
    CASE WHEN has_passed THEN '' ELSE 'stage run at ' || host || ': write failed' END, 1,
    CASE WHEN has_passed THEN '' ELSE 'run' END, CASE WHEN has_passed THEN '' ELSE host END, '', false, slot,
    slot + interval '5 s'
FROM long_series, long_slot
ON CONFLICT DO NOTHING;
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT metric.id, slot, slot + interval '5 s', 1 + random() - ln(1 - random()), has_passed
FROM long_slot, long_series JOIN monitor_metric AS metric ON metric.segment_id = long_series.segment_id
ORDER BY slot, metric.id
ON CONFLICT DO NOTHING;
INSERT INTO monitor_dirtyhour (series_id, hour)
SELECT DISTINCT id, date_trunc('hour', slot, 'UTC') FROM long_series, long_slot;
DROP TABLE long_series, long_slot;
RESET session_replication_role;
"""


def load(names: Sequence[str]) -> None:
    """Add the runs, samples, rollups and counts of the series with these *names*, which exist."""
    values: Mapping[str, Any] = {
        "names": list(names), "metrics": list(METRICS), "runs": RUNS, "failed_one_in": FAILED_ONE_IN,
    }  # fmt: skip
    with connection.cursor() as cursor:
        for statement in filter(None, _LOAD.split(";\n")):  # the server takes no parameters for several
            cursor.execute(statement, values)
        cursor.execute("VACUUM ANALYZE")
    roll_all()
    outcomes.recount_all()
    outcomes.count(timezone.now(), within_seconds=math.inf)
    began = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(minutes=RUNS)  # an hour
    keys = Series.objects.filter(name__in=names).values_list("pk", flat=True)
    latest_sql.update_rows([(key, began) for key in keys])
    with connection.cursor() as cursor:  # the benchmark's server has no autovacuum
        cursor.execute("VACUUM ANALYZE")
