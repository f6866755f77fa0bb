"""Statistics of one series among a thousand, over a month and over three years, against SQL by hand."""

from __future__ import annotations

import random
import statistics as average
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import connection

from monitor.models import DayRollup, Metric
from monitor.services.distribution import distribution
from monitor.services.statistics import statistics, statistics_by
from tests.bench import years
from tests.bench.base import Result, interleaved, seconds

SERIES, DAYS = years.SERIES, years.DAYS  # of 26 million samples; DAYS = 42 is a million
TIMES = 41
SEED = 5

OF_ROLLUPS = """
SELECT bucket, mean, sketch[(95 * passed + 99) / 100]
FROM monitor_dayrollup WHERE metric_id = %s AND bucket >= %s AND bucket < %s ORDER BY bucket
"""
OF_SAMPLES = """
SELECT date_trunc('day', time, 'UTC') AS day, avg(value) FILTER (WHERE passed),
    percentile_disc(0.95) WITHIN GROUP (ORDER BY value) FILTER (WHERE passed)
FROM monitor_sample WHERE metric_id = %s AND time >= %s AND time < %s GROUP BY 1 ORDER BY 1
"""


def measure() -> list[Result]:
    found = years.loaded(SERIES, DAYS)
    day_rows = DayRollup.objects.count()
    stored = {
        "samples": found.samples,
        "load, samples/s": found.samples / found.load_seconds,
        "load, s": found.load_seconds,
        "rebuild of the rollups, s": found.roll_seconds,
        "rebuild, samples/s": found.samples / found.roll_seconds,
        "rebuild, rows/s": day_rows / found.roll_seconds,
        "samples, bytes each": found.raw_bytes / found.samples,
        "rollups, bytes per sample": found.rolled_bytes / found.samples,
    }
    month = max(found.start, found.end - timedelta(days=30))
    return [
        _daily("30 days, daily mean and p95 / best SQL", found.metrics, month, found.end, 2.0, stored),
        _daily("3 years, daily mean and p95 / best SQL", found.metrics, found.start, found.end, 5.0, {}),
        _whole(found.metrics, found.start, found.end),
    ]


def _daily(
    name: str, metrics: list[Metric], start: datetime, end: datetime, target: float, stored: dict[str, float]
) -> Result:
    """The service also looks for what has changed, and says how old the data are."""
    ask = _of_any(metrics, lambda metric: statistics_by(metric, start, end, "day"))
    rolled = _of_any(metrics, lambda metric: _sql(OF_ROLLUPS, metric, start, end))
    raw = _of_any(metrics, lambda metric: _sql(OF_SAMPLES, metric, start, end))
    service_seconds, rolled_seconds = interleaved(ask, rolled, TIMES)
    raw_seconds = average.median(seconds(raw) for _ in range(TIMES))
    return Result(
        name=name,
        ratio=service_seconds / min(rolled_seconds, raw_seconds),
        target=target,
        better="lower",
        figures={
            "service, ms": 1e3 * service_seconds,
            "SQL over rollups, ms": 1e3 * rolled_seconds,
            "SQL over samples, ms": 1e3 * raw_seconds,
            **stored,
        },
    )


def _whole(metrics: list[Metric], start: datetime, end: datetime) -> Result:
    """All of it as one stretch: from sketches, against every value."""
    ask = _of_any(metrics, lambda metric: statistics(metric, start, end))
    distributed = _of_any(metrics, lambda metric: distribution(metric, start, end))
    raw = _of_any(metrics, lambda metric: _sql(OF_SAMPLES.replace("'day'", "'year'"), metric, start, end))
    service_seconds, raw_seconds = interleaved(ask, raw, TIMES)
    return Result(
        name="3 years at once / SQL over samples",
        ratio=service_seconds / raw_seconds,
        target=1.0,
        better="lower",
        figures={
            "service, ms": 1e3 * service_seconds,
            "SQL over samples, ms": 1e3 * raw_seconds,
            "distribution, ms": 1e3 * average.median(seconds(distributed) for _ in range(TIMES)),
        },
    )


def _of_any(metrics: list[Metric], ask: Callable[[Metric], object]) -> Callable[[], object]:
    """Another series every time, the same for everybody."""
    draw = random.Random(SEED)
    return lambda: ask(draw.choice(metrics))


def _sql(query: str, metric: Metric, start: datetime, end: datetime) -> object:
    with connection.cursor() as cursor:
        cursor.execute(query, [metric.pk, start, end])
        return cursor.fetchall()
