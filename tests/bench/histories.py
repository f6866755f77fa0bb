"""Load years of hourly reports of a few series: their runs, samples, rollups and forecasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from django.db import connection, transaction

from monitor.analysis.forecasts.metric_state import followed
from monitor.analysis.forecasts.refresh import refresh_all
from monitor.core.db.partitions import range_of
from monitor.depot.engines import engine
from monitor.depot.rollups.worker import rebuild
from monitor.models import ForecastState, Metric, PendingChange, Series, SuccessState
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest_all
from monitor.web.status import latest_sql
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.bench.base import seconds
from tests.monitor.builders import circle_report

SERIES = 80
METRICS = 12  # of a report: 4 stages, 3 totals, and its own
SAMPLES_A_DAY = SERIES * METRICS * 24
BYTES_A_SAMPLE = 200  # with indexes, rollups and its share of a run
REPORTING = 10  # series with forecasts, which report after the history
LEARNED = timedelta(days=2)  # of values that the forecasts have used: to learn decades takes hours
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

# In the order of arrival, hour by hour. Indexes are created when all rows of a month are loaded.
_CREATE = "CREATE TABLE {part} (LIKE {table} INCLUDING CONSTRAINTS)"
_ATTACH = "ALTER TABLE {table} ATTACH PARTITION {part} FOR VALUES FROM (%s) TO (%s)"
_SLOTS = "generate_series(%(start)s, %(end)s - interval '1 hour', interval '1 hour') AS slot"
_FILL = {
    "monitor_sample": f"""
INSERT INTO {{part}} (metric_id, time, known_at, value, passed)
SELECT metric_id, slot, slot + interval '40 seconds', 20 + metric_id %% 97 + 5 * random() - ln(1 - random()),
    random() > 0.02
FROM {_SLOTS}, unnest(%(metrics)s::bigint[]) AS metric_id
""",
    "monitor_run": f"""
INSERT INTO {{part}} (id, series_id, slot, due_at, trigger, state, reason, attempt, stage, failed_resource,
    cause, forced, started_at, ended_at)
SELECT gen_random_uuid(), series_id, slot, slot, 'schedule', 'passed', '', 1, '', '', 'reported by home',
    false, slot, slot + interval '40 seconds'
FROM {_SLOTS}, unnest(%(series)s::bigint[]) AS series_id
""",
}


@dataclass(frozen=True)
class History:
    """Series with hourly reports during *days*, until *end*."""

    series: Sequence[Series]
    metrics: Sequence[Metric]
    end: datetime
    load_seconds: float
    rebuild_seconds: float


def load(days: int) -> History:
    """Load the history into an empty depot; it ends a day ago."""
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - DAY
    names = [f"grown-{number}" for number in range(SERIES)]
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    ring, parameters = {"ring": ["here", "there"]}, {"file_bytes": 1000}  # as in the reports
    define(resources, [SeriesDefinition(name, "circle", ring, parameters) for name in names])
    store([report(name, end) for name in names])  # creates segments and metrics
    series, metrics = list(Series.objects.all()), list(Metric.objects.all())
    start = end - days * DAY
    load_seconds = seconds(lambda: _load(series, metrics, start, end))
    rebuild_seconds = seconds(lambda: _drain(rebuild(start, end + DAY)))
    with transaction.atomic():
        latest_sql.update_rows([(each.pk, end) for each in series])
    _vacuum()
    _forecast(series[:REPORTING], end)
    return History(series, metrics, end, load_seconds, rebuild_seconds)


def report(series: str, slot: datetime, number: int = 0) -> wire.Report:
    own = [wire.MetricValue(f"own.{each}", 0.5 + each, "bytes") for each in range(METRICS - 7)]
    return replace(circle_report(slot, series=series, ring_seconds=4 + number % 7 / 10), metrics=own)


def reports(history: History) -> Iterator[list[wire.Report]]:
    """Yield reports of the first ``REPORTING`` series, minute by minute after the history."""
    for number in count(1):
        slot = history.end + number * timedelta(minutes=1)
        yield [report(series.name, slot, number) for series in history.series[:REPORTING]]


def store(batch: Sequence[wire.Report]) -> None:
    refused = [
        receipt.error
        for receipt in ingest_all([wire.to_json(each) for each in batch])
        if not receipt.accepted or receipt.duplicate
    ]
    if refused:
        raise AssertionError(refused[0])


def _load(series: Sequence[Series], metrics: Sequence[Metric], start: datetime, end: datetime) -> None:
    keys = {"series": [each.pk for each in series], "metrics": [each.pk for each in metrics]}
    with connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '512MB'")
        for table, fill in _FILL.items():
            existing = {part.name for part in engine().partitions(table)}
            time = start
            while time < end:
                span = range_of(time)
                part = f"{table}_{span.label}"
                if part not in existing:
                    cursor.execute(_CREATE.format(part=part, table=table))
                cursor.execute(fill.format(part=part), {**keys, "start": time, "end": min(span.end, end)})
                if part not in existing:
                    cursor.execute(_ATTACH.format(part=part, table=table), [span.start, span.end])
                time = span.end


def _forecast(series: Sequence[Series], end: datetime) -> None:
    """Learn the newest values of *series*."""
    PendingChange.objects.all().delete()  # of the other series
    until = end - LEARNED
    learning = followed(segment__series__in=series)
    ForecastState.objects.bulk_create(ForecastState(metric=each, used_until=until) for each in learning)
    SuccessState.objects.bulk_create(SuccessState(series=each, used_until=until) for each in series)
    refresh_all(datetime.now(UTC))
    _vacuum()


def _drain(progress: Iterator[object]) -> None:
    for _ in progress:
        pass


def _vacuum() -> None:
    """The benchmark's server has no autovacuum."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
