"""Queries over two years of hours: pairs against SQL, a downsampled history against all values."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from django.db import connection

from monitor.core.db import partitions
from monitor.depot.rollups.worker import rebuild
from monitor.depot.samples import write
from monitor.depot.samples.correlation import correlation
from monitor.depot.samples.downsampled import downsample
from monitor.depot.samples.pairing import paired
from monitor.depot.samples.write import SampleRow
from monitor.models import Metric, Sample, Segment, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from tests.bench.base import Result, interleaved, seconds

HOURS = 17_520
TIMES = 9
START = datetime(2024, 1, 1, tzinfo=UTC)
END = START + timedelta(hours=HOURS)
SEED = 7

# A lateral join looks up the probe value for every value of the application.
LOOK_BACK = """
SELECT run.time, run.value, known.time, known.value
FROM monitor_sample AS run CROSS JOIN LATERAL (
    SELECT time, value FROM monitor_sample AS probe
    WHERE probe.metric_id = %s AND probe.passed AND probe.time <= run.time AND probe.known_at <= run.time
    ORDER BY time DESC LIMIT 1
) AS known
WHERE run.metric_id = %s AND run.passed ORDER BY run.time
"""


def measure() -> list[Result]:
    application, probe = _metrics()
    try:
        return [_pairs(application, probe), _history(application)]
    finally:
        Sample.objects.filter(metric__in=[application, probe]).delete()
        Series.objects.filter(name__startswith="years-").delete()


def _pairs(application: Metric, probe: Metric) -> Result:
    pair_seconds = statistics.median(seconds(lambda: paired(application, probe)) for _ in range(TIMES))
    sql_seconds = seconds(lambda: _look_back(application, probe))
    pairs = paired(application, probe)
    assert len(_look_back(application, probe)) == len(pairs)
    columns = (pairs.application_value, pairs.probe_value)
    correlate_seconds = statistics.median(seconds(lambda: correlation(*columns)) for _ in range(TIMES))
    return Result(
        name="pairs of two years / look back in SQL",
        ratio=pair_seconds / sql_seconds,
        target=0.3,
        better="lower",
        figures={
            "pairs of two years, ms": 1e3 * pair_seconds,
            "look back in SQL, ms": 1e3 * sql_seconds,
            "their correlation, ms": 1e3 * correlate_seconds,
            "pairs": len(pairs),
        },
    )


def _history(metric: Metric) -> Result:
    shown, read = interleaved(
        lambda: downsample(metric, start=START, end=END, points=1000),
        lambda: list(Sample.objects.filter(metric=metric, passed=True).order_by("time")),
        TIMES,
    )
    thinned = statistics.median(
        seconds(lambda: downsample(metric, start=START, end=END, points=1000, most_read=HOURS))
        for _ in range(TIMES)
    )
    return Result(
        name="history of two years in 1000 points / rows",
        ratio=shown / read,
        target=0.1,
        better="lower",
        figures={
            "two years in 1000 points, ms": 1e3 * shown,
            "the same of all samples (M4), ms": 1e3 * thinned,
            "all rows as models, ms": 1e3 * read,
        },
    )


def _look_back(application: Metric, probe: Metric) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(LOOK_BACK, [probe.pk, application.pk])
        rows: list[tuple[object, ...]] = cursor.fetchall()
    return rows


def _metrics() -> tuple[Metric, Metric]:
    """Store two metrics with two years of hours; 1 run in 50 failed, 1 report in 20 is late."""
    resources = [ResourceConfig(name, name, str(Path("/") / name)) for name in ("here", "there")]
    names = ("years-application", "years-probe")
    define(resources, [SeriesDefinition(name, "circle", {"ring": ["here", "there"]}) for name in names])
    application, probe = (_metric(Series.objects.get(name=name)) for name in names)
    partitions.create_for([START + timedelta(days=day) for day in range(HOURS // 24 + 2)])
    rng = np.random.default_rng(SEED)
    for metric, minute in ((application, 30), (probe, 5)):
        _store(metric, START + timedelta(minutes=minute), rng)
    for _ in rebuild(START, END + timedelta(days=1)):
        pass
    return application, probe


def _metric(series: Series) -> Metric:
    segment = Segment.objects.create(series=series, number=1, fingerprint="1", began_at=START)
    return Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")


def _store(metric: Metric, first: datetime, rng: np.random.Generator) -> None:
    values = rng.gamma(4.0, 3.0, HOURS).tolist()
    passed = (rng.random(HOURS) < 0.98).tolist()
    late_seconds = np.where(rng.random(HOURS) < 0.05, 50_000.0, 60.0) * rng.random(HOURS)
    times = [first + timedelta(hours=hour) for hour in range(HOURS)]
    known_at = [
        time + timedelta(seconds=late) for time, late in zip(times, late_seconds.tolist(), strict=True)
    ]
    write.write([SampleRow(metric.pk, *row) for row in zip(times, known_at, values, passed, strict=True)])
