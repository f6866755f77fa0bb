"""A scrape of /metrics: 10,000 of 100,000 series, compared with SQL that only copies their latest states."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings

from monitor.metrics.definitions import Group
from monitor.metrics.exposition import OPENMETRICS, AnswerCache, expose
from monitor.metrics.scope import ScrapeRequest
from tests.bench import overview
from tests.bench.base import Result, interleaved, seconds

DESCRIBED = 10_000
TIMES = 5
_COPY = f"""
COPY (
    SELECT series.name, latest.state, latest.ended_at FROM monitor_series AS series
    JOIN monitor_latestrun AS latest ON latest.series_id = series.id ORDER BY series.name LIMIT {DESCRIBED}
) TO STDOUT
"""


def measure() -> list[Result]:
    overview.load()
    request = ScrapeRequest(User.objects.create_user("bench-metrics", is_superuser=True))
    with override_settings(GRIDCAST_METRICS_MAX_SERIES=DESCRIBED):
        scrape, copied = interleaved(lambda: _scrape(request), _rows_copied, TIMES)
        size = len(_scrape(request))
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
                "answer, MB": size / 1e6,
                **by_group,
            },
        )
    ]


def _scrape(request: ScrapeRequest) -> bytes:
    return expose(request, OPENMETRICS, AnswerCache())[0]


def _rows_copied() -> int:
    rows = 0
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for block in copy:
            rows += len(block)
    return rows
