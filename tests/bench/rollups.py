"""Statistics of one series of a thousand over a month and three years against plain SQL; and over HTTP, with
pairs of two years, against the functions alone."""

from __future__ import annotations

import random
import statistics as average
from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db import connection

from monitor.depot.rollups.histogram import histogram
from monitor.depot.rollups.statistics import statistics, statistics_by
from monitor.depot.samples.correlation import correlation
from monitor.depot.samples.pairing import paired
from monitor.models import ApiToken, DayRollup, Metric
from monitor.models.token import READ
from tests.bench import web, years
from tests.bench.base import Result, interleaved, seconds

SERIES, DAYS = years.SERIES, years.DAYS  # 26 million samples; DAYS = 42 is a million
TIMES = 41
WARM = 20  # requests: each web process prepares frequent statements
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
    loaded = years.loaded(SERIES, DAYS)
    day_rows = DayRollup.objects.count()
    stored = {
        "samples": loaded.samples,
        "load, samples/s": loaded.samples / loaded.load_seconds,
        "load, s": loaded.load_seconds,
        "rebuild of the rollups, s": loaded.roll_seconds,
        "rebuild, samples/s": loaded.samples / loaded.roll_seconds,
        "rebuild, rows/s": day_rows / loaded.roll_seconds,
        "samples, bytes each": loaded.raw_bytes / loaded.samples,
        "rollups, bytes per sample": loaded.rolled_bytes / loaded.samples,
    }
    month = max(loaded.start, loaded.end - timedelta(days=30))
    return [
        _daily("30 days, daily mean and p95 / best SQL", loaded.metrics, month, loaded.end, 2.0, stored),
        _daily("3 years, daily mean and p95 / best SQL", loaded.metrics, loaded.start, loaded.end, 5.0, {}),
        _whole(loaded.metrics, loaded.start, loaded.end),
        *_by_http(loaded.metrics, month, loaded.start, loaded.end),
    ]


def _daily(
    name: str, metrics: list[Metric], start: datetime, end: datetime, target: float, stored: dict[str, float]
) -> Result:
    """Compare with SQL; the function also looks for dirty hours and the newest value."""
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
    """Measure statistics of the whole range from sketches against reading every value."""
    ask = _of_any(metrics, lambda metric: statistics(metric, start, end))
    distributed = _of_any(metrics, lambda metric: histogram(metric, start, end))
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


def _by_http(metrics: list[Metric], month: datetime, start: datetime, end: datetime) -> list[Result]:
    """Measure requests: they check a token, look up the series and encode JSON."""
    reader = ApiToken.objects.issue(User.objects.create_user("of-years"), "reader", [READ])
    two_years = max(start, end - timedelta(days=730))
    with web.serving("monitor.wsgi") as address:
        ask = web.asking(address, reader)
        month_asked = _daily_by_http(ask, metrics, month, end)
        years_asked = _daily_by_http(ask, metrics, start, end)
        pairs_asked = _pairs_by_http(ask, metrics, two_years, end)
        return [
            _asked("30 days by HTTP / service", *month_asked, 8.0, bound_ms=10.0),
            _asked("3 years by HTTP / service", *years_asked, 4.0, bound_ms=10.0),
            _asked("pairs of two years by HTTP / service", *pairs_asked, 4.0, bound_ms=100.0),
        ]


def _asked(
    name: str,
    by_http: Callable[[], object],
    service: Callable[[], object],
    target: float,
    *,
    bound_ms: float,
) -> Result:
    """*bound_ms* is the maximum on two cores."""
    for _ in range(WARM):
        by_http()
    http_seconds, service_seconds = interleaved(by_http, service, TIMES)
    figures = {
        "by HTTP, ms": 1e3 * http_seconds,
        "by HTTP, to be below, ms": bound_ms,
        "service, ms": 1e3 * service_seconds,
    }
    return Result(name, http_seconds / service_seconds, target, "lower", figures)


def _daily_by_http(
    ask: web.Ask, metrics: list[Metric], start: datetime, end: datetime
) -> tuple[Callable[[], object], Callable[[], object]]:
    query = urlencode({"start": start.isoformat(), "end": end.isoformat(), "every": "day"})

    def by_http(metric: Metric) -> None:
        path = f"/api/v1/series/{metric.segment.series.name}/metrics/{metric.name}/statistics?{query}"
        if b'"p95":' not in ask(path):
            raise AssertionError(path)

    service = _of_any(metrics, lambda metric: statistics_by(metric, start, end, "day"))
    return _of_any(metrics, by_http), service


def _pairs_by_http(
    ask: web.Ask, metrics: list[Metric], start: datetime, end: datetime
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Measure pairs with the correlation of all and the newest thousand."""
    probe = metrics[0]
    query = urlencode(
        {"probe": probe.segment.series.name, "start": start.isoformat(), "end": end.isoformat()}
    )

    def by_http(metric: Metric) -> None:
        path = f"/api/v1/pairs?series={metric.segment.series.name}&{query}"
        if b'"pearson":{' not in ask(path):
            raise AssertionError(path)

    def service(metric: Metric) -> None:
        pairs = paired(metric, probe, start=start, end=end)
        correlation(pairs.application_value, pairs.probe_value)

    return _of_any(metrics, by_http), _of_any(metrics, service)


def _of_any(metrics: list[Metric], ask: Callable[[Metric], object]) -> Callable[[], object]:
    """Draw another series every time, the same for both."""
    draw = random.Random(SEED)
    return lambda: ask(draw.choice(metrics))


def _sql(query: str, metric: Metric, start: datetime, end: datetime) -> object:
    with connection.cursor() as cursor:
        cursor.execute(query, [metric.pk, start, end])
        return cursor.fetchall()
