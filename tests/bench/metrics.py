"""A scrape of /metrics: 10,000 of 100,000 series, compared with SQL that only copies their latest states."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.web.metrics.definitions import Group
from monitor.web.metrics.exposition import AnswerCache, expose
from monitor.web.metrics.scope import ScrapeRequest
from monitor.web.metrics.text_format import OPENMETRICS, decompressed
from tests.bench import overview
from tests.bench.base import Result, interleaved, seconds

DESCRIBED = 10_000
TIMES = 5
STAGES = ("init", "stage_data", "build_executable", "queue_wait", "run", "transfer_ring", "cleanup")
_METRICS = ",".join(
    [*(f"stage.{name}.seconds" for name in STAGES), "total_essential.seconds", "total_core.seconds"]
)
# Stages, totals and forecasts of the described series, as an application benchmark has them.
_DETAILS = f"""
CREATE TEMPORARY TABLE described AS
SELECT series.id, segment.id AS segment, headline.id AS headline, newest.time
FROM monitor_series AS series JOIN monitor_segment AS segment ON segment.series_id = series.id
JOIN monitor_metric AS headline ON headline.segment_id = segment.id
CROSS JOIN LATERAL (SELECT max(time) AS time FROM monitor_sample WHERE metric_id = headline.id) AS newest
ORDER BY series.name LIMIT {DESCRIBED};
WITH metric AS (
    INSERT INTO monitor_metric (segment_id, name, unit)
    SELECT segment, name, 'seconds' FROM described, unnest('{{{_METRICS}}}'::text[]) AS name
    RETURNING id, segment_id
)
INSERT INTO monitor_sample (metric_id, time, known_at, value, passed)
SELECT metric.id, time, time, random(), true FROM metric JOIN described ON segment = segment_id;
INSERT INTO monitor_currentsegment (series_id, segment_id, setup, application, path, resources)
SELECT id, segment, '', 'login', '', '' FROM described;
WITH forecast AS (
    INSERT INTO monitor_forecast (metric_id, issued_at, method, predictor, level, last_time, last_known_at, n,
        mean, median, lower, upper, quantiles)
    SELECT headline, now(), 'blend', '', 0.9, time, time, 24, 1, 1, 0, 2,
        ARRAY(SELECT sin(level) FROM generate_series(1, {len(QUANTILE_LEVELS)}) AS level ORDER BY 1)
    FROM described RETURNING id, metric_id
)
INSERT INTO monitor_forecaststate (metric_id, is_behind, n, forecast_id, stale_at, record_n, less, most)
SELECT metric_id, false, 24, id, now() + interval '1 day', 0, '{{}}', '{{}}' FROM forecast;
INSERT INTO monitor_successstate (series_id, is_behind, n, probability)
SELECT id, false, 24, .9 FROM described;
ANALYZE;
"""
_COPY = f"""
COPY (
    SELECT series.name, latest.state, latest.ended_at FROM monitor_series AS series
    JOIN monitor_latestrun AS latest ON latest.series_id = series.id ORDER BY series.name LIMIT {DESCRIBED}
) TO STDOUT
"""


def measure() -> list[Result]:
    overview.load()
    with connection.cursor() as cursor:
        cursor.execute(_DETAILS)
    request = ScrapeRequest(User.objects.create_user("bench-metrics", is_superuser=True))
    with override_settings(GRIDCAST_METRICS_MAX_SERIES=DESCRIBED):
        scrape, copied = interleaved(lambda: _scrape(request), _rows_copied, TIMES)
        began = time.process_time()
        answer = _scrape(request)
        computed = time.process_time() - began
    with override_settings(GRIDCAST_METRICS_MAX_SERIES=DESCRIBED // 10):
        few, _ = interleaved(lambda: _scrape(request), _rows_copied, TIMES)
        by_group = {
            f"group {group} alone, ms": seconds(partial(_scrape, replace(request, groups=frozenset({group}))))
            * 1000
            for group in Group
        }
    return [
        Result(
            name="scrape of 10,000 of 100,000 series / of 1,000",
            ratio=scrape / few,
            target=12.0,
            better="lower",
            figures={
                "scrape of 10,000 series, ms": scrape * 1000,
                "scrape of 1,000 series, ms": few * 1000,
                "COPY of 10,000 states, ms": copied * 1000,
                "of them in Python, ms of CPU": computed * 1000,
                "answer, MB": len(decompressed(answer)) / 1e6,
                "answer compressed, MB": len(answer) / 1e6,
                **by_group,
            },
        )
    ]


def _scrape(request: ScrapeRequest) -> bytes:
    return expose(request, OPENMETRICS, AnswerCache())


def _rows_copied() -> int:
    rows = 0
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for block in copy:
            rows += len(block)
    return rows
